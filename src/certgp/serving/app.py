"""The HTTP interface. Every refusal has the form {"error": what is wrong and what to do, "field": where}."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from certgp.errors import CertgpError
from certgp.serving.limits import LimitedBody, Limits
from certgp.serving.pages import documentation_page, landing_page
from certgp.serving.refusal import RefusedRequestError, join_problems
from certgp.serving.schema import (
    CertificateAnswer,
    Health,
    ModelCard,
    PredictRequest,
    PredictResponse,
    Refusal,
    inputs_in_schema,
)
from certgp.serving.served import Question, ServedModel
from certgp.version import __version__

_DESCRIPTION = "Predictions with uncertainty from one fitted model, and what is proven of it."
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "the body is no JSON"},
    408: {"model": Refusal, "description": "the body took too long to arrive"},
    413: {"model": Refusal, "description": "too many bytes"},
    422: {
        "model": Refusal,
        "description": "a field is missing, malformed, not finite, of the wrong width or has too many rows",
    },
    503: {"model": Refusal, "description": "too many requests wait, or the prediction took too long"},
}


def make_app(served: ServedModel, limits: Limits | None = None) -> FastAPI:
    """The application of one model."""
    limits = limits or Limits()
    app = FastAPI(
        title=f"certgp: a model of {served.target}",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,  # FastAPI's own pages fetch scripts from elsewhere
        redoc_url=None,
    )
    app.add_middleware(LimitedBody, limits=limits)
    _add_answers(app, served, _Queue(served, limits))
    _add_pages(app, served)
    _add_refusals(app)
    _describe(app, served, limits)
    return app


class _Queue:
    """Predictions side by side, as many as the machine has cores for; the others wait, and too many are sent away."""

    def __init__(self, served: ServedModel, limits: Limits) -> None:
        self._served, self._limits = served, limits
        self._slots = anyio.CapacityLimiter(limits.at_once)
        self._inside = 0

    async def answer(self, question: Question) -> dict[str, Any]:
        """The prediction, from a thread of its own."""
        if self._inside >= self._limits.max_waiting + self._limits.at_once:
            raise RefusedRequestError(503, f"{self._inside} requests wait already; try again in a second")
        deadline = time.monotonic() + self._limits.max_seconds
        work = partial(self._served.answer, question, lambda: time.monotonic() < deadline)
        self._inside += 1
        try:
            return await to_thread.run_sync(work, limiter=self._slots)
        finally:
            self._inside -= 1

    def check_rows(self, count: int, field: str) -> None:
        """Refuse too many rows, and none."""
        if not 1 <= count <= self._limits.max_rows:
            allowed = f"send 1 to {self._limits.max_rows:,} per request"
            raise RefusedRequestError(422, f"{field} has {count:,} entries; {allowed}", field)


def _add_answers(app: FastAPI, served: ServedModel, queue: _Queue) -> None:
    @app.post("/predict", response_model=PredictResponse, responses=_REFUSALS, tags=["predictions"])
    async def predict(request: PredictRequest) -> Response:
        """Mean, standard deviation and interval of every row, and further quantiles on request."""
        if (request.rows is None) == (request.records is None):
            raise RefusedRequestError(422, "give either rows (lists of numbers) or records (objects)", "rows")
        if request.rows is not None:
            queue.check_rows(len(request.rows), "rows")
            asked = served.inputs.read_rows(request.rows)
        else:
            records = request.records or []
            queue.check_rows(len(records), "records")
            asked = served.inputs.read_records(records)
        found = await queue.answer(Question(asked, request.coverage, request.quantiles, request.include_noise))
        return _json(found)

    @app.get(
        "/certificate",
        response_model=CertificateAnswer,
        responses={404: {"model": Refusal, "description": "there is none, and why"}},
        tags=["model"],
    )
    def certificate() -> Response:
        """How far the model is from the exact GP with the same hyper-parameters, with proof; in words and numbers."""
        return _json(served.certificate())

    @app.get("/model", response_model=ModelCard, tags=["model"])
    def model() -> Response:
        """What was fitted: in words, settings, inputs and their ranges."""
        return _json(served.card())

    @app.get("/health", response_model=Health, tags=["server"])
    async def health() -> Response:
        """Is the server well?"""
        seconds = time.monotonic() - served.started
        known = {"status": "ok", "model": served.name, "version": __version__}
        return _json(known | {"seconds_up": seconds, "predicted_rows": served.predicted_rows})


def _add_pages(app: FastAPI, served: ServedModel) -> None:
    @app.get("/", include_in_schema=False)
    def landing(request: Request) -> HTMLResponse:
        return HTMLResponse(landing_page(served, str(request.base_url)))

    @app.get("/docs", include_in_schema=False)
    def documentation(request: Request) -> HTMLResponse:
        return HTMLResponse(documentation_page(app.openapi(), served, str(request.base_url)))

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return Response(status_code=204)


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        return _refuse_fields(error.errors())

    @app.exception_handler(RefusedRequestError)
    async def refused(request: Request, error: RefusedRequestError) -> Response:
        return _refuse(error.status, str(error), error.field)

    @app.exception_handler(CertgpError)
    async def unusable(request: Request, error: CertgpError) -> Response:
        return _refuse(422, str(error))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        hint = "; GET /docs lists what there is" if error.status_code in (404, 405) else ""
        answer = _refuse(error.status_code, f"{error.detail}{hint}", "body" if error.status_code == 400 else None)
        answer.headers.update(error.headers or {})
        return answer


def _refuse_fields(errors: Sequence[Any]) -> Response:
    """What pydantic found, by the names of fields; 400 where the body could not be read at all."""
    if any(each["type"] == "json_invalid" for each in errors):
        return _refuse(400, f"the body is no JSON: {errors[0].get('ctx', {}).get('error', errors[0]['msg'])}", "body")
    places = [_place(each["loc"]) for each in errors]
    told = [f"{place}: {each['msg']}" for place, each in zip(places, errors, strict=True)]
    return _refuse(422, join_problems(told), places[0])


def _place(location: Sequence[str | int]) -> str:
    """("body", "rows", 3, 1) as rows[3][1]."""
    inside = location[1:] if location and location[0] == "body" else location
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside).lstrip(".")
    return text or "body"


def _refuse(status: int, error: str, field: str | None = None) -> Response:
    return _json({"error": error, "field": field}, status)


def _json(values: dict[str, Any], status: int = 200) -> Response:
    """Plain values as they are: they need no second check against the schema. Names of fields come from requests and
    may hold halves of letters, so only ASCII is written.
    """
    return Response(json.dumps(values, allow_nan=False), status, media_type="application/json")


def _describe(app: FastAPI, served: ServedModel, limits: Limits) -> None:
    """The OpenAPI document says what this very model takes."""
    schema = app.openapi()
    inputs_in_schema(schema, served.inputs, limits.max_rows, served.knows_function)
    body = schema["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    body["example"] = served.example("rows") | {"coverage": 0.95, "quantiles": [0.1, 0.5, 0.9]}
