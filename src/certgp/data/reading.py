"""Rows of one file, some at a time: CSV and TSV, Parquet, Arrow, .npz and .npy."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pa_compute
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from certgp.data.array_files import archive_labels, array_parts, column_labels, part_rows, stored_layout
from certgp.data.csv_text import (
    DELIMITERS,
    is_number,
    lenient_batches,
    not_numeric,
    string_batches,
    text_batches,
    text_header,
)
from certgp.data.folders import are_short, folder_columns, with_folder_columns
from certgp.data.skipped import Skipped
from certgp.errors import DataFileError, HeaderWarning, warn_user

NAMELESS = (".npz", ".npy")  # arrays have no column names: x0, x1, ... stand in for them
ARROW = (".arrow", ".feather", ".ipc")
READABLE = (*DELIMITERS, ".parquet", *ARROW, *NAMELESS)
Array = NDArray[np.float64]
_BUFFER_BYTES = 2**18  # of a compressed column that is being read
_SHORT = ("float", "halffloat", "int8", "int16", "uint8", "uint16", "bool")  # Arrow's names of types

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


def read_header(path: Path, sep: str | None = None) -> tuple[str, ...]:
    """Names of the columns of a file and of its folders; its rows are not read. ``sep`` separates those of texts, where
    it is not that of the file's ending.
    """
    kind, names = ending(path), _own_header(path, sep)
    if kind in DELIMITERS and all(map(is_number, names)):
        warn_user(
            f"all column names of {path} are numbers ({listed(names, most=3)}): the first line is read as names, so if "
            "it is a row of data, write a line of names above it",
            HeaderWarning,
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(f"{path} has more than one column named {listed(twice)}; rename them")
    folders = {} if kind in NAMELESS else folder_columns(path)
    return (*(name for name in names if name not in folders), *folders)


def _own_header(path: Path, sep: str | None = None) -> tuple[str, ...]:
    """Names of the columns that are in the file itself."""
    kind = ending(path)
    with _damage_reported(path):
        if kind in DELIMITERS:
            return text_header(path, sep or DELIMITERS[kind])
        if kind == ".parquet":
            return tuple(str(name) for name in pa_parquet.read_schema(path).names)
        if kind in ARROW:
            with _open_arrow(path) as reader:
                return tuple(str(name) for name in reader.schema.names)
        if kind == ".npz":
            return archive_labels(path)
        with path.open("rb") as stream:
            return column_labels(stored_layout(stream)[0], path)


def _own_columns(path: Path, names: Sequence[str], sep: str | None = None) -> list[str]:
    """Those of the named columns that are in the file itself; where all are folders', the first column, which has as
    many rows.
    """
    folders = folder_columns(path)
    return [name for name in names if name not in folders] or list(_own_header(path, sep)[:1])


class Part(NamedTuple):
    """Some rows of a file."""

    rows: NDArray[np.int64]  # their numbers in the file, from 0
    values: Array  # (n, number of columns)
    behind: int  # number of the row that comes next in the file


def read_range(path: Path, names: Sequence[str], start: int, stop: int, skips: bool) -> Iterator[Array]:
    """The named columns of rows ``start`` to ``stop`` of a file, (n, number of names) at a time; where bad rows are
    skipped, of those that are left.
    """
    at = 0
    for part in read_parts(path, names, Skipped() if skips else None, 0 if skips else start):
        at = at if skips else int(part.rows[0])
        if len(part.rows) and at + len(part.rows) > start:
            yield part.values[max(0, start - at) : stop - at]
        at += len(part.rows)
        if at >= stop:
            return


def count_rows(path: Path, names: Sequence[str], skipped: Skipped | None = None) -> int:
    """Rows of a file, or of those that can be used; read through where nothing but reading tells."""
    if skipped is None and ending(path) == ".parquet":
        with _damage_reported(path):
            found = int(pa_parquet.read_metadata(path).num_rows)
        if found == 0:
            refuse_empty(path, None)
        return found
    return sum(len(part.rows) for part in read_parts(path, names, skipped))


def read_parts(path: Path, names: Sequence[str], skipped: Skipped | None = None, after: int = 0) -> Iterator[Part]:
    """The named columns of all rows, (n, number of names) at a time; of those before row ``after`` as many are left out
    as the format makes easy.

    Missing and infinite values are refused, and so is a file without rows; or such rows are left out and counted, and
    of a file that is damaged in the middle all that follows.
    """
    lines: list[int] = []  # of a text, those that are left out
    begin = start = _easy_begin(path, after)  # rows of the file that were parsed, or left out
    try:
        with _damage_reported(path):
            unchecked = _unchecked_parts(path, names, None if skipped is None else lines, start)
            for values in unchecked:
                rows = numbers_in_file(np.arange(start, start + len(values)), lines)
                start += len(values)
                behind = start + len(lines)
                usable = np.isfinite(values).all(axis=1)
                if usable.all():
                    yield Part(rows, values, behind)
                elif skipped is None:
                    raise _unusable(path, names, values, start - len(values), unchecked)
                else:
                    skipped.add_rows(path, int((~usable).sum()))
                    yield Part(rows[usable], values[usable], behind)
    except DataFileError as error:
        if skipped is None:
            raise
        skipped.add_file(path, str(error) if start == begin else f"from row {start + 1} on, {error}")
        return
    if skipped is not None:
        skipped.add_rows(path, len(lines))
        yield Part(np.empty(0, np.int64), np.empty((0, len(names))), start + len(lines))
    if start == begin:
        refuse_empty(path, skipped)


def refuse_empty(path: Path, skipped: Skipped | None) -> None:
    """A file without rows is an error, or noted as left out."""
    if skipped is None:
        raise DataFileError(f"{path} has no rows; leave it out, or skip it (on_bad_rows='skip', --on-bad-rows skip)")
    skipped.add_file(path, "it has no rows")


def _easy_begin(path: Path, after: int) -> int:
    """The last row, none behind ``after``, at which reading can begin without looking at all rows before."""
    kind = ending(path)
    if after == 0 or kind not in (*DELIMITERS, ".parquet"):
        return 0
    if kind in DELIMITERS:
        return after
    with _damage_reported(path):
        starts = _group_starts(pa_parquet.read_metadata(path))
    return int(starts[np.searchsorted(starts, after, side="right") - 1])


def _group_starts(metadata: pa_parquet.FileMetaData) -> NDArray[np.int64]:
    """The first row of each row group of a Parquet file, and the number of rows."""
    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return np.cumsum([0, *counts], dtype=np.int64)


def raw_batches(
    path: Path, names: Sequence[str], sep: str | None = None, lines: list[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The named columns of all rows as they are in the file, texts as texts. With ``lines``, lines of a text that have
    other lengths are left out and their numbers added there.
    """
    kind = ending(path)
    with _damage_reported(path):
        if kind in NAMELESS:
            for part in _unchecked_parts(path, names, None):
                yield pa.record_batch([pa.array(column) for column in part.T.copy()], names=list(names))
            return
        own = _own_columns(path, names, sep)
        if kind not in DELIMITERS:
            batches = _typed_batches(path, own)
        elif lines is None:
            batches = string_batches(path, sep or DELIMITERS[kind], own)
        else:
            batches = lenient_batches(path, sep or DELIMITERS[kind], own, lines)
        yield from (with_folder_columns(path, names, batch) for batch in batches)


def _typed_batches(path: Path, names: Sequence[str], begin: int = 0) -> Iterator[pa.RecordBatch]:
    """The named columns of Parquet, from the row group that begins with row ``begin`` on, or of Arrow."""
    if ending(path) == ".parquet":
        with pa_parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            groups = np.flatnonzero(_group_starts(file.metadata)[:-1] >= begin).tolist()
            rows = part_rows(len(names))
            yield from file.iter_batches(rows, row_groups=groups, columns=list(names), use_threads=False)
    else:
        with _open_arrow(path) as reader:
            yield from (batch.select(list(names)) for batch in _record_batches(reader))


def stored_type(path: Path, names: Sequence[str]) -> np.dtype[Any]:
    """float32 where it holds every number of these columns as the file does, else float64."""
    kind = ending(path)
    folders = {} if kind in NAMELESS else folder_columns(path)
    own = [name for name in names if name not in folders]
    with _damage_reported(path):
        if kind == ".parquet":
            types = [pa_parquet.read_schema(path).field(name).type for name in own]
        elif kind in ARROW:
            with _open_arrow(path) as reader:
                types = [reader.schema.field(name).type for name in own]
        elif kind == ".npy":
            with path.open("rb") as stream:
                types = [pa.from_numpy_dtype(stored_layout(stream)[2])]
        else:
            types = [pa.float64()]
    short = all(str(each) in _SHORT for each in types) and are_short([folders[name] for name in set(names) - set(own)])
    return np.dtype(np.float32 if short else np.float64)


def plain_rows(path: Path) -> tuple[int, tuple[int, int], np.dtype[Any]] | None:
    """Where the numbers of an .npy file begin, their shape and type, if they can be used as they lie; else None."""
    if ending(path) != ".npy":
        return None
    with _damage_reported(path), path.open("rb") as stream:
        shape, by_column, dtype = stored_layout(stream)
        begin = stream.tell()
        if len(shape) != 2 or by_column or dtype.byteorder == ">" or dtype.kind != "f" or dtype.itemsize not in (4, 8):
            return None
        if path.stat().st_size < begin + math.prod(shape) * dtype.itemsize:
            raise EOFError("it ends before its last row")
    return begin, (shape[0], shape[1]), dtype


def numbers_in_file(parsed: NDArray[np.int64], lines: Sequence[int]) -> NDArray[np.int64]:
    """Numbers of rows in the file, from their numbers among those that were parsed; lines count from the header."""
    left_out = np.sort(np.array(lines, dtype=np.int64)) - 2 - np.arange(len(lines))
    return parsed + np.searchsorted(left_out, parsed, side="right")


def _unusable(path: Path, names: Sequence[str], values: Array, start: int, rest: Iterator[Array]) -> DataFileError:
    wrong = ~np.isfinite(values)
    column = int(wrong.any(axis=0).argmax())
    row = start + int(wrong[:, column].argmax())
    count = int(wrong[:, column].sum()) + sum(int((~np.isfinite(part[:, column])).sum()) for part in rest)
    return DataFileError(
        f"column {names[column]!r} of {path} has {count} missing or infinite value(s), first in row {row + 1}"
        f"{place_of(path, row)}; fill them or leave those rows out (on_bad_rows='skip', --on-bad-rows skip)"
    )


def place_of(path: Path, row: int) -> str:
    """Where in a file a row is, in the units of its format; rows are counted from 0."""
    kind = ending(path)
    if kind in DELIMITERS:
        return f" (line {row + 2})"
    if kind == ".parquet":
        group = int(np.searchsorted(_group_starts(pa_parquet.read_metadata(path)), row, side="right")) - 1
        return f" (row group {group}, counted from 0)"
    return ""


def _unchecked_parts(path: Path, names: Sequence[str], lines: list[int] | None, begin: int = 0) -> Iterator[Array]:
    """Parts as they are in the file from row ``begin`` on, with NaN for what is missing; with ``lines`` also for words,
    and lines of a text that have other lengths are left out.
    """
    kind, lenient = ending(path), lines is not None
    if kind not in NAMELESS:
        own = _own_columns(path, names)
        if kind not in DELIMITERS:
            batches = _typed_batches(path, own, begin)
        elif lines is None:
            batches = text_batches(path, DELIMITERS[kind], own, begin)
        else:
            batches = lenient_batches(path, DELIMITERS[kind], own, lines)
        complete = (with_folder_columns(path, names, batch) for batch in batches)
        yield from _from_arrow(complete, names, path, lenient, begin)
    elif kind == ".npy":
        with path.open("rb") as stream:
            yield from array_parts(stream, None, names, path)
    else:
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as inputs:
            if "y" not in names:
                yield from array_parts(inputs, None, names, path)
                return
            with archive.open("y.npy") as target:
                yield from array_parts(inputs, target, names, path)


def _open_arrow(path: Path) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """A file, which Feather is too, or a stream of record batches."""
    with path.open("rb") as stream:
        is_file = stream.read(6) == b"ARROW1"
    source = pa.memory_map(str(path))
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _record_batches(
    reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader,
) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchStreamReader):
        yield from reader
        return
    for i in range(reader.num_record_batches):
        yield reader.get_batch(i)


def _from_arrow(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], path: Path, lenient: bool, start: int = 0
) -> Iterator[Array]:
    for batch in batches:
        part = np.empty((batch.num_rows, len(names)))
        for j, name in enumerate(names):
            column = batch.column(name)
            part[:, j] = _text_numbers(column) if lenient else _numeric_column(column, name, path, start)
        start += batch.num_rows
        yield part


def _text_numbers(column: pa.Array) -> NDArray[Any]:
    """A column as numbers, with NaN for all that is none."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        try:
            return np.asarray(pa_compute.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # dates, lists and the like
            return np.full(len(column), np.nan)
    try:
        return np.asarray(pa_compute.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        texts = column.to_pylist()
        return np.array([float(text) if text and is_number(text) else np.nan for text in texts])


def _numeric_column(column: pa.Array, name: str, path: Path, start: int) -> NDArray[Any]:
    """A column of numbers, nulls as NaN; ``start`` rows came before it."""
    kind, is_kind = column.type, pa.types
    numeric = (is_kind.is_integer, is_kind.is_floating, is_kind.is_boolean, is_kind.is_decimal, is_kind.is_null)
    if not any(check(kind) for check in numeric):
        texts = ["" if value is None else str(value) for value in column.to_pylist()]
        at = next((i for i, text in enumerate(texts) if text and not is_number(text)), 0)
        raise not_numeric(path, name, f"row {start + at + 1}{place_of(path, start + at)}", texts[at])
    return np.asarray(column.to_numpy(zero_copy_only=False))


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    """Whatever a format's library says about a broken file becomes one error that names the file."""
    try:
        yield
    except DataFileError:
        raise
    except _DAMAGED as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataFileError(
            f"{path} cannot be read as {ending(path)[1:]} ({reason}); check that the file is whole"
        ) from error
