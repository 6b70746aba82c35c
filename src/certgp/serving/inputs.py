"""What a model takes: requests in, the numbers of the estimator out; in words for the model card and the document."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.estimators import GPRegressor
from certgp.serving.refusal import RefusedRequestError, refuse_all

Array = NDArray[np.float64]
Described = dict[str, Any]
_NAMED = 20  # inputs in a message


@dataclass(frozen=True, eq=False)
class Asked:
    """The rows of a request."""

    X: Array  # (n, D), as the estimator takes them
    field: str = "rows"  # that held them
    notes: tuple[str, ...] = ()  # what was done to them that the sender should know


class Inputs(ABC):
    """The inputs of a served model."""

    names: tuple[str, ...]  # none where the fit had none
    labels: tuple[str, ...]  # what people read
    takes_rows: bool  # or records only

    @abstractmethod
    def read_rows(self, rows: Sequence[Sequence[float]]) -> Asked:
        """Lists of numbers in the order of the inputs."""

    @abstractmethod
    def read_records(self, records: Sequence[Mapping[str, Any]]) -> Asked:
        """Objects with the names of the inputs."""

    @abstractmethod
    def described(self) -> list[Described]:
        """Each input for the model card: its name, and what its values are."""

    @abstractmethod
    def example(self) -> list[Any]:
        """A value for each input."""

    @abstractmethod
    def record_schema(self) -> dict[str, Any]:
        """What each input of a record may be, as JSON Schema."""


class NumberInputs(Inputs):
    """Columns of numbers."""

    takes_rows = True

    def __init__(self, model: GPRegressor) -> None:
        self._model, self.names = model, model.column_names
        self.labels = self.names or tuple(f"x{j}" for j in range(model.n_features_in_))

    def read_rows(self, rows: Sequence[Sequence[float]]) -> Asked:
        """An array (n, D), refused by the numbers of rows of another length."""
        width = len(self.labels)
        inputs = f"{width} input(s): {_listed(self.labels)}"
        problems = {
            f"rows[{i}]": f"rows[{i}] has {len(row)} number(s) but the model has {inputs}"
            for i, row in enumerate(rows)
            if len(row) != width
        }
        refuse_all(problems)
        return Asked(np.array(rows, dtype=np.float64).reshape(len(rows), width))

    def read_records(self, records: Sequence[Mapping[str, Any]]) -> Asked:
        """An array (n, D), refused by the names of inputs that are missing, unknown or no numbers."""
        if not self.names:
            raise RefusedRequestError(
                422, "the model was fitted on columns without names; send rows, lists of numbers", "records"
            )
        refuse_all(dict(wrong_names(records, self.names)))
        X = [[finite_number(record[name]) for name in self.names] for record in records]
        problems = {
            f"records[{i}].{name}": f"records[{i}].{name} should be a valid number, finite and without quotes"
            for i, row in enumerate(X)
            for name, value in zip(self.names, row, strict=True)
            if value is None
        }
        refuse_all(problems)
        return Asked(np.array(X, dtype=np.float64), "records")

    def described(self) -> list[Described]:
        """Names and ranges."""
        ends = zip(self.labels, *ranges(self._model), strict=True)
        return [{"name": name, "lower": low, "upper": high} for name, low, high in ends]

    def example(self) -> list[Any]:
        """The middle of each range."""
        return [middle(low, high) for low, high in zip(*ranges(self._model), strict=True)]

    def record_schema(self) -> dict[str, Any]:
        """Numbers."""
        return {name: {"type": "number"} for name in self.names}


def wrong_names(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Records that lack an input or have one that the model has not: the field and what is wrong."""
    known = set(names)
    for i, record in enumerate(records):
        missing, unknown = [name for name in names if name not in record], sorted(set(record) - known)
        if missing or unknown:
            wrong = [f"misses {_listed(missing)}"] if missing else []
            wrong += [f"has {_listed(unknown)}, which the model has not"] if unknown else []
            told = f"records[{i}] {' and '.join(wrong)}; it takes {_listed(names)}"
            yield f"records[{i}].{(missing or unknown)[0]}", told


def finite_number(value: object) -> float | None:
    """A number of a request, None for all else: true and false, texts, infinity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return found if math.isfinite(found) else None


def ranges(model: GPRegressor) -> tuple[list[float], list[float]]:
    """Least and largest value of each column in the training rows of any output, with a little room."""
    lower = np.min([each.lower for each in model.models], axis=0)
    upper = np.max([each.upper for each in model.models], axis=0)
    return lower.tolist(), upper.tolist()


def middle(low: float, high: float) -> float:
    """A short number between two others."""
    return float(f"{0.5 * (low + high):.4g}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
