"""Columns of any Arrow type as numbers, moments in time or levels; what cannot be one is marked, never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# what text files write where nothing is; in frames and Parquet only nothing, or an empty text, is a gap
GAP_WORDS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "?", "-", "--", ".")
TRUE_WORDS, FALSE_WORDS = ("true", "yes", "y", "t"), ("false", "no", "n", "f")
ISO = "ISO"  # 2024-01-31, 2024-01-31 12:00, 2024-01-31T12:00:00.5
CLOCK = "%H:%M:%S"
# how dates are written elsewhere, each with and without a time; which come first does not matter: if two fit, we ask
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
DATE_FORMATS = (ISO, *(day + clock for day in _DAYS for clock in _CLOCKS if (day, clock) != ("%Y%m%d", "")))
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"^(?i:[+-]?inf(inity)?)$"
_COMMA_NUMBER = r"^[+-]?\d+(,\d+)?$"
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?Z?)?$"
_YEAR_1000 = -30_610_224_000.0
_CLOCK_TIME = r"^\d{1,2}:\d{2}(:\d{2})?$"


@dataclass(frozen=True)
class TextFormat:
    """How numbers and columns are written in text files."""

    sep: str | None = None  # between columns; None is that of the file's ending
    decimal: str = "."

    def describe(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"sep": self.sep, "decimal": self.decimal}


def is_text(kind: pa.DataType) -> bool:
    """Is this a column of texts?"""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(values: pa.Array | pa.ChunkedArray, gap_words: Sequence[str] = ("",)) -> pa.Array:
    """One array without a dictionary; texts are stripped, and words for gaps are gaps."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not is_text(values.type):
        return values
    values = pc.utf8_trim_whitespace(pc.cast(values, pa.string()))
    return pc.if_else(pc.is_in(values, pa.array(gap_words)), pa.scalar(None, pa.string()), values)


def gaps_in(values: pa.Array) -> Mask:
    """Where nothing is (n,): nulls, and NaN or infinity among numbers."""
    missing = np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_floating(values.type):
        finite = pc.fill_null(pc.is_finite(values), False)
        return np.asarray(missing | ~np.asarray(finite.to_numpy(zero_copy_only=False), dtype=bool))
    if is_text(values.type):
        return missing | matches(values, _INFINITE)
    return missing


def matches(texts: pa.Array, pattern: str) -> Mask:
    """Which texts fit a pattern (n,); gaps fit none."""
    found = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def looks_like_numbers(texts: pa.Array, decimal: str) -> Mask:
    """Which texts are numbers with this decimal mark (n,)."""
    return matches(texts, _NUMBER.replace(r"\.", re.escape(decimal)))


def looks_like_decimal_commas(texts: pa.Array) -> Mask:
    """Which texts would be numbers if commas were decimal points (n,)."""
    return matches(texts, _COMMA_NUMBER)


def is_numeric(kind: pa.DataType) -> bool:
    """Is this a type of numbers?"""
    is_kind = pa.types
    return any(holds(kind) for holds in (is_kind.is_integer, is_kind.is_floating, is_kind.is_decimal))


def is_number_like(values: pa.Array) -> bool:
    """Are these numbers, or true and false, or texts of numbers, but for gaps?"""
    kind = values.type
    if not is_text(kind):
        return is_numeric(kind) or bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))
    present = values.filter(pa.array(~gaps_in(values)))
    truths = pc.all(pc.is_in(pc.utf8_lower(present), pa.array(["true", "false"]))).as_py()
    return bool(looks_like_numbers(present, ".").all()) or bool(truths)


def numbers_of(values: pa.Array, decimal: str = ".") -> Array:
    """Numbers (n,), NaN for gaps and for what is none; booleans are 0 and 1, durations are seconds."""
    kind = values.type
    if is_text(kind):
        good = pa.array(looks_like_numbers(values, decimal))
        texts = pc.if_else(good, values, pa.scalar(None, pa.string()))
        texts = texts if decimal == "." else pc.replace_substring(texts, decimal, ".")
        found = _floats(pc.cast(pc.utf8_ltrim(texts, "+"), pa.float64()))
    elif pa.types.is_duration(kind):
        found = _floats(pc.cast(pc.cast(values, pa.duration("us"), safe=False), pa.int64())) / 1e6
    elif is_numeric(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        found = _floats(pc.cast(values, pa.float64(), safe=False))
    else:
        found = np.full(len(values), np.nan)
    return np.where(np.isfinite(found), found, np.nan)


def truths_of(values: pa.Array) -> Array:
    """1 for true and yes, 0 for false and no, NaN for gaps and all else (n,)."""
    if not is_text(values.type):
        found = numbers_of(values)
        return np.where((found == 0.0) | (found == 1.0), found, np.nan)
    lower = pc.utf8_lower(values)
    yes, no = (_flags(pc.is_in(lower, pa.array(words))) for words in (TRUE_WORDS, FALSE_WORDS))
    return np.where(yes, 1.0, np.where(no, 0.0, np.nan))


def levels_of(values: pa.Array) -> pa.Array:
    """Texts, null for gaps; whole numbers are written without a point, whatever their type was."""
    kind = values.type
    if is_text(kind):
        return values
    if pa.types.is_floating(kind):
        found = numbers_of(values)
        whole = np.isnan(found) | (found == np.round(found))
        texts = [
            None if np.isnan(x) else f"{x:.0f}" if w else repr(float(x)) for x, w in zip(found, whole, strict=True)
        ]
        return pa.array(texts, pa.string())
    return pc.cast(values, pa.string())


def is_moment(kind: pa.DataType) -> bool:
    """Is this a type of dates or times of day?"""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def looks_like_clock(texts: pa.Array) -> Mask:
    """Which texts are times of day, as 7:30 or 07:30:15 (n,)."""
    return matches(texts, _CLOCK_TIME)


def moments_of(values: pa.Array, form: str | None) -> Array:
    """Seconds since 1970, or since midnight of times of day, as the clock on the wall shows them: (n,), NaN for gaps.

    ``form`` says how texts are written: ISO, CLOCK or one of DATE_FORMATS.
    """
    kind = values.type
    if is_text(kind):
        return _clock_seconds(values) if form == CLOCK else _text_seconds(values, form or ISO)
    if pa.types.is_time(kind):
        unit = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return _floats(pc.cast(pc.cast(values, width), pa.float64())) * unit
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    if not is_moment(kind):
        return np.full(len(values), np.nan)
    return _seconds(pc.cast(values, pa.timestamp("us"), safe=False))


def _text_seconds(texts: pa.Array, form: str) -> Array:
    if form != ISO:
        found = _seconds(pc.strptime(texts, format=form, unit="us", error_is_null=True))
        return np.where(found < _YEAR_1000, np.nan, found)  # 31/12/24 is not of the first century
    good = pa.array(matches(texts, _ISO_DATE))
    kept = pc.if_else(good, pc.replace_substring(texts, "Z", ""), pa.scalar(None, pa.string()))
    try:
        return _seconds(pc.cast(kept, pa.timestamp("ns")).cast(pa.timestamp("us"), safe=False))
    except pa.ArrowInvalid:  # a day that does not exist, such as 2023-02-30: one by one
        return np.array([_one_moment(text) for text in kept.to_pylist()])


def _one_moment(text: str | None) -> float:
    try:
        return float("nan") if text is None else float(np.datetime64(text, "us").astype(np.int64)) / 1e6
    except ValueError:
        return float("nan")


def _clock_seconds(texts: pa.Array) -> Array:
    """7:30 and 07:30:15 as seconds since midnight."""
    found = np.full(len(texts), np.nan)
    for i, text in enumerate(texts.to_pylist()):
        parts = [] if text is None else text.split(":")
        if len(parts) in (2, 3) and all(part.isdecimal() for part in parts):
            hours, minutes, seconds = (int(part) for part in (*parts, "0")[:3])
            if hours < 24 and minutes < 60 and seconds < 60:
                found[i] = 3600.0 * hours + 60.0 * minutes + seconds
    return found


def _seconds(moments: pa.Array) -> Array:
    return _floats(pc.cast(pc.cast(moments, pa.int64()), pa.float64(), safe=False)) / 1e6


def _floats(values: pa.Array) -> Array:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _flags(values: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=bool)
