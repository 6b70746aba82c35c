"""What requests and answers look like: the source of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[float, Field(strict=True, ge=1e-9, le=1.0 - 1e-9, allow_inf_nan=False)]
_MOST_QUANTILES = 99


class PredictRequest(BaseModel):
    """Rows to predict, as lists of numbers in the order of the model's inputs or as objects with their names."""

    model_config = ConfigDict(extra="forbid")

    rows: list[list[Number]] | None = Field(None, description="each a list of numbers, in the order of the inputs")
    records: list[dict[str, Number]] | None = Field(None, description="each an object: name of an input, number")
    coverage: Level = Field(0.95, description="probability with which y lies between lower and upper")
    quantiles: list[Level] = Field([], max_length=_MOST_QUANTILES, description="further quantiles of y, as levels")
    include_noise: Annotated[bool, Field(strict=True)] = Field(
        True, description="std of a new observation of y, or (false) of the function behind it"
    )


class PredictResponse(BaseModel):
    """A value per row, in the units of y; of several outputs a list per row."""

    mean: list[Any] = Field(description="expected y")
    std: list[Any] = Field(description="standard deviation")
    lower: list[Any] = Field(description="lower ends of the intervals for y")
    upper: list[Any] = Field(description="upper ends")
    quantiles: list[Any] | None = Field(description="per row one number for each level asked for")
    coverage: float
    n_rows: int
    n_outside: int = Field(description="rows outside the range of the training inputs; trust them less")


class Refusal(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="what was found, where, and what to do")
    field: str | None = Field(None, description="the field of the request, such as rows[3][1]")


class Health(BaseModel):
    """Is the server well?"""

    status: str
    model: str
    version: str
    seconds_up: float
    predicted_rows: int


class Input(BaseModel):
    """A column that the model predicts from."""

    name: str
    lower: float = Field(description="least value in the training rows, with a little room")
    upper: float = Field(description="largest value")


class ModelCard(BaseModel):
    """What was fitted, for people and programs."""

    title: str
    target: str
    outputs: int
    summary: list[str]
    settings: dict[str, str]
    inputs: list[Input]
    n_rows: Any
    certificate: str = Field(description="in a sentence, or why there is none")


class CertificateAnswer(BaseModel):
    """How far the model is from the exact GP, with proof."""

    verdict: str
    meaning: list[str]
    limits: list[str]
    numbers: dict[str, str]
    basis: list[list[str]]
    certificate: dict[str, Any] = Field(description="all numbers, for programs")


def width_in_schema(schema: dict[str, Any], n_inputs: int, names: tuple[str, ...], max_rows: int) -> None:
    """Say in the document what the model of this server takes: the number of columns, their names, how many rows."""
    request = schema["components"]["schemas"]["PredictRequest"]
    rows, records = (request["properties"][key]["anyOf"][0] for key in ("rows", "records"))
    rows["items"] |= {"minItems": n_inputs, "maxItems": n_inputs}
    for key, each in (("rows", rows), ("records", records)):
        each |= {"minItems": 1, "maxItems": max_rows, "description": request["properties"][key]["description"]}
    number = records["items"]["additionalProperties"]
    wanted = {"properties": dict.fromkeys(names, number), "required": list(names), "additionalProperties": False}
    records["items"] = {"type": "object", **wanted}
    ways = {"rows": rows} if not names else {"rows": rows, "records": records}
    for key in ("rows", "records"):
        request["properties"].pop(key)
    request["properties"] = ways | request["properties"]
    request["oneOf"] = [{"required": [key]} for key in ways]
