"""Single columns as numbers; what cannot be one is refused by its name."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.errors import InvalidInputError

Numbers = NDArray[np.floating]
NUMBERS = "fiub"  # kinds of NumPy types: floats, whole numbers with and without sign, True and False
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))  # kept as they are; all else becomes float64
TARGET = "the target y holds"
_NAMES_OF_TYPES = ("date", "time", "duration", "period")  # datetime64, timestamp[us], Duration, period[D], ...
_OBJECTS = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_REMEDY = "turn them into numbers, such as days since a fixed day, or month and hour"


def columns_hold(names: Sequence[str]) -> str:
    """How a message about columns of X begins."""
    return f"column(s) {', '.join(names)} of X hold"


def is_date_type(kind: object) -> bool:
    """Is this the type of dates, times or durations, in NumPy, pandas, polars or Arrow?"""
    return str(kind).lower().startswith(_NAMES_OF_TYPES)


def dates_error(what: str) -> InvalidInputError:
    """Libraries turn dates into numbers without a word, or refuse them without a name; as inputs of a model their unit
    and origin are for the user to choose.
    """
    return InvalidInputError(f"{what} dates or times; {_REMEDY}{'' if what == TARGET else ', or drop them'}")


def as_numbers(values: NDArray[Any], what: str, rows: Iterable[int]) -> Numbers:
    """A column (n,) as floats; ``what`` begins the message about one that holds others, ``rows`` numbers its values."""
    if values.dtype in FLOATS:
        return values
    if is_date_type(values.dtype) or (values.dtype.kind == "O" and any(isinstance(v, _OBJECTS) for v in values)):
        raise dates_error(what)
    if values.dtype.kind == "c":
        raise InvalidInputError(f"Complex data not supported: {what} complex numbers; give real ones")
    try:
        return values.astype(np.float64)
    except ValueError as error:
        row, word = next((row, value) for row, value in zip(rows, values, strict=True) if not _is_number(value))
        remedy = "encode it as numbers" if what == TARGET else "encode or drop them"
        raise InvalidInputError(
            f"{what} words instead of numbers ({str(word)!r} in row {row}, counted from 0); {remedy}"
        ) from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None  # a gap, which becomes NaN
    return True
