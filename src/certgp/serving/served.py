"""A fitted model as a server needs it: checked requests in, plain values out, all through the public estimator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.data import ArrayRows
from certgp.errors import CertgpError, CertgpWarning, NotCertifiableError
from certgp.estimators import GPRegressor
from certgp.estimators.held_out import count_outside, distribution_of_target, modelled_target, models_log
from certgp.estimators.outputs import name_outputs
from certgp.estimators.report_words import settings_of, summarise_fit
from certgp.estimators.table_gp import TableGP
from certgp.guarantees import Certificate, Explanation
from certgp.json_values import finite
from certgp.serving.inputs import Asked, Inputs, NumberInputs
from certgp.serving.refusal import RefusedRequestError
from certgp.serving.table_inputs import TableInputs

_CHUNK_ROWS = 1_000  # predicted between two looks at the clock
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """What to predict."""

    asked: Asked
    coverage: float
    quantiles: Sequence[float]
    include_noise: bool


@dataclass(eq=False)
class ServedModel:
    """One fitted model, its name, and how much it has predicted so far."""

    given: GPRegressor | TableGP
    name: str
    predicted_rows: int = 0
    started: float = field(default_factory=time.monotonic)

    @cached_property
    def model(self) -> GPRegressor:
        """The estimator, which takes numbers."""
        found = self.given.fitted if isinstance(self.given, TableGP) else self.given
        if found.outputs_ is not None and found.encoding_ is not None:
            name_outputs(found)
        return found

    @cached_property
    def inputs(self) -> Inputs:
        """What requests hold."""
        return TableInputs(self.given) if isinstance(self.given, TableGP) else NumberInputs(self.given)

    @property
    def target(self) -> str:
        """The name of y."""
        return self.model.target_name_ or "y"

    @property
    def n_outputs(self) -> int:
        """How many values are predicted per row."""
        return len(self.model.models)

    @property
    def knows_function(self) -> bool:
        """Has the function behind the observations a standard deviation in the units of y? That of log(y) has none."""
        return not models_log(self.model)

    def answer(self, question: Question, in_time: Callable[[], bool] = lambda: True) -> dict[str, Any]:
        """Predictions as plain values. Some rows are predicted at a time, while ``in_time``."""
        if not question.include_noise and not self.knows_function:
            learned = modelled_target(self.model)
            raise RefusedRequestError(
                422,
                f"the model has learned {learned}, and the standard deviation of that function is not in the units of "
                f"{self.target}; leave include_noise out",
                "include_noise",
            )
        parts, X = [], question.asked.X
        for start in range(0, len(X), _CHUNK_ROWS):
            if not in_time():
                raise RefusedRequestError(
                    503, "the prediction took too long and was given up; send fewer rows, or raise --max-seconds"
                )
            parts.append(self._predict(question, start))
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        bad = ~np.isfinite(np.concatenate([each.reshape(len(each), -1) for each in joined.values()], 1)).all(1)
        if bad.any():
            first = int(bad.argmax())
            raise RefusedRequestError(
                422,
                f"row {first} lies so far out that its prediction is not a finite number",
                f"{question.asked.field}[{first}]",
            )
        outside = count_outside(self.model, self._rows(X)).outside
        self.predicted_rows += len(X)
        found: dict[str, Any] = {name: each.tolist() for name, each in joined.items()}
        found.setdefault("quantiles", None)
        found |= {"coverage": question.coverage, "n_rows": len(X), "n_outside": outside}
        return found if self.inputs.takes_rows else found | {"notes": list(question.asked.notes)}

    def _predict(self, question: Question, start: int) -> dict[str, Array]:
        half = 0.5 * question.coverage
        levels = [0.5 - half, 0.5 + half, *question.quantiles]
        model, rows = self.model, self._rows(question.asked.X[start : start + _CHUNK_ROWS])
        observed = distribution_of_target(model, rows)  # once for moments and quantiles
        with np.errstate(over="ignore"):  # exponentials of predictions far out; ``answer`` refuses what is not finite
            mean, variance = observed.moments()
            ends = observed.quantiles(np.array(levels))
        std = np.sqrt(variance)
        if not question.include_noise:
            mean, std = model.predict(rows, return_std=True, include_noise=False)
        found = {"mean": mean, "std": std, "lower": ends[..., 0], "upper": ends[..., 1]}
        return found | ({"quantiles": ends[..., 2:]} if question.quantiles else {})

    def _rows(self, X: Array) -> ArrayRows:
        return ArrayRows(X, None, self.model.column_names or None)

    @cached_property
    def parts(self) -> dict[str, GPRegressor]:
        """The estimator of each output by its name; that of a single one has none."""
        if self.model.outputs_ is None:
            return {"": self.model}
        return dict(zip(name_outputs(self.model), self.model.outputs_, strict=True))

    def card(self) -> dict[str, Any]:
        """What was fitted; of several outputs each in one paragraph."""
        summaries = {name: summarise_fit(part) for name, part in self.parts.items()}
        several = [f"{name}: {' '.join(told)}" for name, told in summaries.items()]
        settings = {_called(name, key): value for name, part in self.parts.items() for key, value in settings_of(part)}
        return {
            "title": f"A model of {self.target}",
            "target": self.target,
            "outputs": self.n_outputs,
            "summary": list(summaries[""]) if "" in summaries else several,
            "settings": settings,
            "inputs": self.inputs.described(),
            "n_rows": self.model.n_rows_,
            "certificate": " ".join(self.proven()),
        }

    @cached_property
    def explained(self) -> dict[str, tuple[Certificate, Explanation] | str]:
        """The certificate of each output's training rows and its words, or why there is none."""
        return {name: _explain(part) for name, part in self.parts.items()}

    def proven(self, limits: bool = False) -> list[str]:
        """What is proven in words, or why nothing is, optionally with what that does not say."""
        told = []
        for name, found in self.explained.items():
            words = [found] if isinstance(found, str) else list(found[1].meaning)
            told += words if not name else [f"{name}: {' '.join(words)}"]
        known = [found[1].limits for found in self.explained.values() if not isinstance(found, str)]
        return [*told, *(dict.fromkeys(text for each in known for text in each) if limits else ())]

    def certificate(self) -> dict[str, Any]:
        """The certificates as plain values; names of several outputs stand before their numbers."""
        found = {name: each for name, each in self.explained.items() if not isinstance(each, str)}
        if not found:
            raise RefusedRequestError(404, " ".join(self.proven()))
        plain = {name: finite(certificate.to_dict()) for name, (certificate, _) in found.items()}
        told = {name: words for name, (_, words) in found.items()}
        return {
            "verdict": ", ".join(_called(name, each.verdict) for name, each in told.items()),
            "meaning": self.proven() if "" not in told else list(told[""].meaning),
            "limits": list(dict.fromkeys(text for each in told.values() for text in each.limits)),
            "numbers": {_called(name, key): text for name, each in told.items() for key, text in each.numbers},
            "basis": [[_called(name, key), text] for name, each in told.items() for key, text in each.basis],
            "certificate": plain.get("", {"outputs": plain}),
        }

    def example(self, way: str) -> dict[str, Any]:
        """A request with one row: as ``rows`` or ``records`` where the model takes both."""
        values = self.inputs.example()
        if self.inputs.names and (way == "records" or not self.inputs.takes_rows):
            return {"records": [dict(zip(self.inputs.names, values, strict=True))]}
        return {"rows": [values]}


def _called(output: str, text: str) -> str:
    return f"{output}: {text}" if output else text


def _explain(part: GPRegressor) -> tuple[Certificate, Explanation] | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertgpWarning)  # the words say it
            found = part.certify()
        return found, part.explain(found)
    except (NotCertifiableError, CertgpError) as error:
        return str(error)
