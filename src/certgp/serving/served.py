"""A fitted model as a server needs it: checked requests in, plain values out, all through the public estimator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.data import ArrayRows
from certgp.errors import CertgpError, CertgpWarning, NotCertifiableError
from certgp.estimators import GPRegressor
from certgp.estimators.held_out import count_outside
from certgp.estimators.report_words import settings_of, summarise_fit
from certgp.guarantees import Explanation
from certgp.json_values import finite

_CHUNK_ROWS = 1_000  # predicted between two looks at the clock
Array = NDArray[np.float64]


class RefusedRequestError(CertgpError):
    """A request that cannot be answered: status, what is wrong, and the field it is about."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


@dataclass(frozen=True)
class Question:
    """What to predict."""

    X: Array  # (n, D)
    coverage: float
    quantiles: Sequence[float]
    include_noise: bool


@dataclass(eq=False)
class ServedModel:
    """One fitted model, its name, and how much it has predicted so far."""

    model: GPRegressor
    name: str
    predicted_rows: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the inputs; none where the fit had none."""
        return self.model.column_names

    @property
    def labels(self) -> tuple[str, ...]:
        """What people read: the names of the inputs, or x0, x1, ..."""
        return self.names or tuple(f"x{j}" for j in range(self.model.n_features_in_))

    @property
    def target(self) -> str:
        """The name of y."""
        return self.model.target_name_ or "y"

    @property
    def n_outputs(self) -> int:
        """How many values are predicted per row."""
        return len(self.model.models)

    def read_rows(self, rows: Sequence[Sequence[float]]) -> Array:
        """Lists of numbers as an array (n, D), refused by the number of the first row of another length."""
        width = self.model.n_features_in_
        for i, row in enumerate(rows):
            if len(row) != width:
                raise RefusedRequestError(
                    422,
                    f"rows[{i}] has {len(row)} number(s) but the model has {width} input(s): {_listed(self.labels)}",
                    f"rows[{i}]",
                )
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)

    def read_records(self, records: Sequence[Mapping[str, float]]) -> Array:
        """Objects as an array (n, D), refused by the name of the first input that is missing or unknown."""
        if not self.names:
            raise RefusedRequestError(
                422, "the model was fitted on columns without names; send rows, lists of numbers", "records"
            )
        known = set(self.names)
        for i, record in enumerate(records):
            missing = [name for name in self.names if name not in record]
            unknown = sorted(set(record) - known)
            if missing or unknown:
                wrong = f"misses {_listed(missing)}" if missing else f"has {_listed(unknown)}, which the model has not"
                where = f"records[{i}].{(missing or unknown)[0]}"
                raise RefusedRequestError(422, f"records[{i}] {wrong}; it takes {_listed(self.names)}", where)
        return np.array([[record[name] for name in self.names] for record in records], dtype=np.float64)

    def answer(self, question: Question, in_time: Callable[[], bool] = lambda: True) -> dict[str, Any]:
        """Predictions as plain values. Some rows are predicted at a time, while ``in_time``."""
        parts = []
        for start in range(0, len(question.X), _CHUNK_ROWS):
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
                422, f"row {first} lies so far out that its prediction is not a finite number", f"rows[{first}]"
            )
        outside = count_outside(self.model, self._rows(question.X)).outside
        self.predicted_rows += len(question.X)
        found: dict[str, Any] = {name: each.tolist() for name, each in joined.items()}
        found.setdefault("quantiles", None)
        return found | {"coverage": question.coverage, "n_rows": len(question.X), "n_outside": outside}

    def _predict(self, question: Question, start: int) -> dict[str, Array]:
        half = 0.5 * question.coverage
        levels = [0.5 - half, 0.5 + half, *question.quantiles]
        model, rows = self.model, self._rows(question.X[start : start + _CHUNK_ROWS])
        observed = model.distribution(rows)  # once for moments and quantiles
        mean, variance = observed.moments()
        std = np.sqrt(variance)
        if not question.include_noise:
            mean, std = model.predict(rows, return_std=True, include_noise=False)
        ends = observed.quantiles(np.array(levels))
        found = {"mean": mean, "std": std, "lower": ends[..., 0], "upper": ends[..., 1]}
        return found | ({"quantiles": ends[..., 2:]} if question.quantiles else {})

    def _rows(self, X: Array) -> ArrayRows:
        return ArrayRows(X, None, self.names or None)

    def card(self) -> dict[str, Any]:
        """What was fitted."""
        first = self.model if self.model.outputs_ is None else self.model.outputs_[0]
        explained = self.explained
        told = explained if isinstance(explained, str) else " ".join(explained.meaning)
        return {
            "title": f"A model of {self.target}",
            "target": self.target,
            "outputs": self.n_outputs,
            "summary": list(summarise_fit(first)),
            "settings": dict(settings_of(first)),
            "inputs": self.inputs(),
            "n_rows": self.model.n_rows_,
            "certificate": told,
        }

    def inputs(self) -> list[dict[str, Any]]:
        """Names and ranges of the inputs."""
        lower = np.min([each.lower for each in self.model.models], axis=0)
        upper = np.max([each.upper for each in self.model.models], axis=0)
        ends = zip(self.labels, lower, upper, strict=True)
        return [{"name": name, "lower": float(low), "upper": float(high)} for name, low, high in ends]

    @cached_property
    def explained(self) -> Explanation | str:
        """The certificate of the training rows in words, or why there is none."""
        if self.model.outputs_ is not None:
            return f"Each of the {self.n_outputs} outputs has a certificate of its own; ask certgp certify."
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CertgpWarning)  # the words say it
                self._certificate = self.model.certify()
            return self.model.explain(self._certificate)
        except (NotCertifiableError, CertgpError) as error:
            return str(error)

    def certificate(self) -> dict[str, Any]:
        """The certificate as plain values."""
        told = self.explained
        if isinstance(told, str):
            raise RefusedRequestError(404, told)
        return {
            "verdict": told.verdict,
            "meaning": list(told.meaning),
            "limits": list(told.limits),
            "numbers": dict(told.numbers),
            "basis": [list(pair) for pair in told.basis],
            "certificate": finite(self._certificate.to_dict()),
        }


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
