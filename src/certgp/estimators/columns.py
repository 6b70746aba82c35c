"""Columns of whatever holds rows (arrays, lists, pandas, polars, Arrow): their names, and dates among them."""

from __future__ import annotations

import datetime
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.errors import InvalidInputError

_NAMES_OF_TYPES = ("date", "time", "duration", "period")  # datetime64, timestamp[us], Duration, period[D], ...
_OBJECTS = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_REMEDY = "turn them into numbers, such as days since a fixed day, or month and hour"


def column_names(X: Any) -> list[str]:
    """Names of the columns of a frame; the numbers of an array's."""
    if hasattr(X, "column_names"):  # Arrow, whose ``columns`` are the columns themselves
        return [str(name) for name in X.column_names]
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    table = np.asarray(X)
    return [str(j) for j in range(table.shape[1] if table.ndim == 2 else 0)]


def refuse_dates(X: Any, y: Any = None) -> None:
    """Dates and times are converted to numbers without a word, or refused without a name, depending on what holds
    them; as inputs of a model their unit and origin are for the user to choose.
    """
    dated = _dated_columns(X)
    if dated:
        raise InvalidInputError(f"column(s) {', '.join(dated)} of X hold dates or times; {_REMEDY}, or drop them")
    if y is not None and _is_dated(_type_of(y), y):
        raise InvalidInputError(f"the target y holds dates or times; {_REMEDY}")


def _dated_columns(X: Any) -> list[str]:
    X = _array_of_list(X)
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        types = list(X.schema.types)
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):
        types = list(X.dtypes)
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        types = [X.dtype] * X.shape[1]
    else:
        return []
    values = np.asarray(X) if any(map(_is_object, types)) else None
    columns = [None if values is None else values[:, j] for j in range(len(types))]
    dated = [_is_dated(kind, column) for kind, column in zip(types, columns, strict=True)]
    return [name for name, holds in zip(column_names(X), dated, strict=True) if holds] if any(dated) else []


def _type_of(y: Any) -> Any:
    y = _array_of_list(y)
    return getattr(y, "dtype", None) or getattr(y, "type", None)


def _is_dated(kind: Any, values: Any) -> bool:
    """By the type of a column, or by its values where the type says nothing."""
    if _is_object(kind):
        return any(isinstance(value, _OBJECTS) for value in np.asarray(values).flat)
    return str(kind).lower().startswith(_NAMES_OF_TYPES)


def _is_object(kind: Any) -> bool:
    return str(kind).lower() == "object"


def _array_of_list(rows: Any) -> Any:
    """Lists as arrays; ragged ones are left for others to refuse."""
    if isinstance(rows, (list, tuple)):
        with suppress(ValueError):
            array: NDArray[Any] = np.asarray(rows)
            return array
    return rows
