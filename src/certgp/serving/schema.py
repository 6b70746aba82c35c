"""What requests and answers look like: the source of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from certgp.serving.inputs import Inputs

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[float, Field(strict=True, ge=1e-9, le=1.0 - 1e-9, allow_inf_nan=False)]
_MOST_QUANTILES = 99


class PredictRequest(BaseModel):
    """Rows to predict, as lists of numbers in the order of the model's inputs or as objects with their names.
    A model of a table with categories, dates or gaps takes objects only.
    """

    model_config = ConfigDict(extra="forbid")

    rows: list[list[Number]] | None = Field(None, description="each a list of numbers, in the order of the inputs")
    records: list[dict[str, Any]] | None = Field(None, description="each an object: name of an input, its value")
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
    notes: list[str] = Field([], description="of tables: categories that no training row had, gaps that were filled in")


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
    kind: str = Field("number", description="number, true or false, date or time, category")
    takes: str | None = Field(None, description="of tables: what a value may be")
    treatment: str | None = Field(None, description="of tables: what the fit did to the column")
    gaps: bool = Field(False, description="are gaps (null) filled in?")
    levels: list[str] | None = Field(None, description="of a category, where they are few")
    lower: float | None = Field(None, description="least number in the training rows, with a little room")
    upper: float | None = Field(None, description="largest number")


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


def inputs_in_schema(schema: dict[str, Any], inputs: Inputs, max_rows: int, knows_function: bool) -> None:
    """Say in the document what the model of this server takes: its inputs, how many rows, which standard deviations."""
    request = schema["components"]["schemas"]["PredictRequest"]
    rows, records = (request["properties"].pop(key) for key in ("rows", "records"))
    ways = {}
    for key, whole in (("rows", rows), ("records", records)):
        ways[key] = {"type": "array", "minItems": 1, "maxItems": max_rows, "description": whole["description"]}
    n = len(inputs.labels)
    ways["rows"]["items"] = {"type": "array", "items": {"type": "number"}, "minItems": n, "maxItems": n}
    wanted = {"properties": inputs.record_schema(), "required": list(inputs.names), "additionalProperties": False}
    ways["records"]["items"] = {"type": "object", **wanted}
    if not inputs.names:
        ways.pop("records")
    if not inputs.takes_rows:
        ways.pop("rows")
    request["properties"] = ways | request["properties"]
    request["oneOf"] = [{"required": [key]} for key in ways]
    if not knows_function:
        request["properties"]["include_noise"] |= {"enum": [True], "description": "std of a new observation of y"}
