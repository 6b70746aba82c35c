"""Rows of one file, some at a time: CSV and TSV, Parquet, .npz and .npy."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from certgp.data.csv_text import DELIMITERS, is_number, not_numeric, text_batches, text_header
from certgp.errors import DataFileError, HeaderWarning, warn_user

NAMELESS = (".npz", ".npy")  # arrays have no column names: x0, x1, ... stand in for them
READABLE = (*DELIMITERS, ".parquet", *NAMELESS)
Array = NDArray[np.float64]
_PART_NUMBERS = 2**18  # read at a time from arrays and Parquet
_BUFFER_BYTES = 2**18  # of a compressed column that is being read

# everything that the readers raise on damaged files, found by feeding them some (pa.ArrowInvalid is a ValueError)
_DAMAGED = (
    pa.ArrowException,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


def ending(path: Path) -> str:
    """What tells a file's format; a compressed one has two parts, as in .csv.gz."""
    name = path.name.lower()
    return next((known for known in READABLE if name.endswith(known)), path.suffix.lower())


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in quotes, which show stray spaces, for a message that stays one line however wide the table is."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def read_header(path: Path) -> tuple[str, ...]:
    """Names of the columns of a file; its rows are not read."""
    kind = ending(path)
    with _damage_reported(path):
        if kind in DELIMITERS:
            names = text_header(path, DELIMITERS[kind])
        elif kind == ".parquet":
            names = tuple(str(name) for name in pa_parquet.read_schema(path).names)
        elif kind == ".npz":
            names = _npz_header(path)
        else:
            with path.open("rb") as stream:
                names = _column_labels(_stored_layout(stream)[0], path)
    if kind in DELIMITERS and all(map(is_number, names)):
        warn_user(
            f"all column names of {path} are numbers ({listed(names, most=3)}): the first line is read as names, so if "
            "it is a row of data, write a line of names above it",
            HeaderWarning,
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(f"{path} has more than one column named {listed(twice)}; rename them")
    return names


def read_parts(path: Path, names: Sequence[str]) -> Iterator[Array]:
    """The named columns of all rows, (n, number of names) at a time; missing and infinite values are refused."""
    start = 0
    with _damage_reported(path):
        unchecked = _unchecked_parts(path, names)
        for part in unchecked:
            wrong = ~np.isfinite(part)
            if wrong.any():
                column = int(wrong.any(axis=0).argmax())
                row = start + int(wrong[:, column].argmax()) + 1
                count = int(wrong[:, column].sum()) + sum(int((~np.isfinite(p[:, column])).sum()) for p in unchecked)
                raise DataFileError(
                    f"column {names[column]!r} of {path} has {count} missing or infinite value(s), first in row {row}; "
                    "fill them or leave those rows out"
                )
            start += len(part)
            yield part


def _unchecked_parts(path: Path, names: Sequence[str]) -> Iterator[Array]:
    kind = ending(path)
    if kind in DELIMITERS:
        yield from _from_arrow(text_batches(path, DELIMITERS[kind], names), names, path)
    elif kind == ".parquet":
        with pa_parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            batches = file.iter_batches(_part_rows(len(names)), columns=list(names), use_threads=False)
            yield from _from_arrow(batches, names, path)
    elif kind == ".npy":
        with path.open("rb") as stream:
            yield from _from_arrays(stream, None, names, path)
    else:
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as inputs:
            if "y" not in names:
                yield from _from_arrays(inputs, None, names, path)
                return
            with archive.open("y.npy") as target:
                yield from _from_arrays(inputs, target, names, path)


def _from_arrow(batches: Iterator[pa.RecordBatch], names: Sequence[str], path: Path) -> Iterator[Array]:
    start = 0
    for batch in batches:
        part = np.empty((batch.num_rows, len(names)))
        for j, name in enumerate(names):
            part[:, j] = _numeric_column(batch.column(name), name, path, start)
        start += batch.num_rows
        yield part


def _numeric_column(column: pa.Array, name: str, path: Path, start: int) -> NDArray[Any]:
    """A column of numbers, nulls as NaN; ``start`` rows came before it."""
    kind, is_kind = column.type, pa.types
    numeric = (is_kind.is_integer, is_kind.is_floating, is_kind.is_boolean, is_kind.is_decimal, is_kind.is_null)
    if not any(check(kind) for check in numeric):
        texts = ["" if value is None else str(value) for value in column.to_pylist()]
        at = next((i for i, text in enumerate(texts) if text and not is_number(text)), 0)
        raise not_numeric(path, name, start + at + 1, texts[at])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _from_arrays(inputs: IO[bytes], target: IO[bytes] | None, names: Sequence[str], path: Path) -> Iterator[Array]:
    """Stored X (N, D), and y (N,) where it is asked for, as named columns."""
    (n, width), blocks = _stored_rows(inputs, path)
    targets: Iterable[NDArray[Any] | None] = repeat(None)
    if target is not None:
        (count, size), targets = _stored_rows(target, path, _part_rows(width))
        if count * size != n:
            raise DataFileError(f"in {path} X has {n} rows but y has {count * size} values; give one y per row")
    for X, y in zip(blocks, targets, strict=False):
        part = np.empty((len(X), len(names)))
        for j, name in enumerate(names):
            part[:, j] = X[:, int(name[1:])] if y is None or name != "y" else y[:, 0]
        yield part


def _stored_rows(
    stream: IO[bytes], path: Path, at_a_time: int | None = None
) -> tuple[tuple[int, int], Iterator[NDArray[Any]]]:
    """Number of rows and columns of a stored array, and its rows, some at a time."""
    shape, by_column, dtype = _stored_layout(stream)
    if dtype.kind not in "fiub":
        raise DataFileError(f"{path} holds values of type {dtype}; store numbers")
    n, width = shape[0], math.prod(shape[1:])
    rows = _part_rows(width) if at_a_time is None else at_a_time

    def read(count: int) -> NDArray[Any]:
        data = stream.read(count * width * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(count, width, order="F" if by_column else "C")

    if by_column and width > 1:  # its rows lie scattered over the whole file
        whole = read(n)
        return (n, width), (whole[start : start + rows] for start in range(0, n, rows))
    return (n, width), (read(min(rows, n - start)) for start in range(0, n, rows))


def _stored_layout(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape of a stored array, whether it is stored column by column, and its type."""
    version = npy_format.read_magic(stream)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    layout: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(stream)
    return layout


def _npz_header(path: Path) -> tuple[str, ...]:
    with zipfile.ZipFile(path) as archive:
        held = [name.removesuffix(".npy") for name in archive.namelist()]
        if "X" not in held:
            found = ", ".join(held) or "nothing"
            raise DataFileError(f"{path} holds {found}; an .npz file needs an array X (N, D), and y (N,) to learn from")
        with archive.open("X.npy") as stream:
            names = _column_labels(_stored_layout(stream)[0], path)
        return (*names, "y") if "y" in held else names


def _column_labels(shape: tuple[int, ...], path: Path) -> tuple[str, ...]:
    if len(shape) not in (1, 2):
        raise DataFileError(f"{path} holds an array of shape {shape}; rows and columns (N, D) are needed")
    return tuple(f"x{i}" for i in range(1 if len(shape) == 1 else shape[1]))


def _part_rows(width: int) -> int:
    return max(1, _PART_NUMBERS // max(width, 1))


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    """Whatever a format's library says about a broken file becomes one error that names the file."""
    try:
        yield
    except DataFileError:
        raise
    except _DAMAGED as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        remedy = (
            "give every row as many values as the header, and put quotes around text with commas"
            if "columns, got" in reason
            else "check that the file is whole"
        )
        raise DataFileError(f"{path} cannot be read as {ending(path)[1:]} ({reason}); {remedy}") from error
