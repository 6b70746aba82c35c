"""Rows of files and of other libraries' tables, decoded once: ``certgp.read``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.checks import check_choice, one_number
from certgp.data.columns import Numbers
from certgp.data.reading import listed, plain_rows, stored_type
from certgp.data.rows import FrameRows, PickedRows, Rows, WeightedRows, frame_column, is_frame, is_from
from certgp.data.skipped import Skipped, skipping
from certgp.data.store import DEFAULT_MEMORY, NumbersInFile, RowStore, StoredRows
from certgp.data.streams import Stream, as_stream
from certgp.data.tables import TableFiles, open_table, require_columns
from certgp.errors import DataFileError, InvalidInputError

_DTYPES = ("auto", "float32", "float64")
_CHUNK_ROWS = 65_536


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are for what."""

    inputs: tuple[str, ...]
    target: str | None = None
    weights: str | None = None

    @staticmethod
    def of(
        names: Sequence[str],
        target: str | None,
        weights: str | None = None,
        inputs: Sequence[str] | None = None,
        drop: Sequence[str] = (),
    ) -> Layout:
        """The columns that were named; without ``inputs`` all others are inputs."""
        drop = [drop] if isinstance(drop, str) else list(drop)
        special = [name for name in (target, weights) if name is not None]
        require_columns([*special, *(inputs or ()), *drop], names)
        chosen = names if inputs is None else inputs
        found = tuple(name for name in chosen if name not in drop and (inputs is not None or name not in special))
        twice = [name for name in special if name in found or name in drop or special.count(name) > 1]
        if twice:
            raise InvalidInputError(
                f"column {twice[0]!r} has two roles among inputs, target, weights and drop; give it one"
            )
        if not found:
            raise DataFileError(f"no input column is left of {listed(names)}; at least one is needed")
        return Layout(found, target, weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read, in the order in which they are stored."""
        return (*self.inputs, *(name for name in (self.target, self.weights) if name is not None))

    def rows(
        self, numbers: NDArray[Any] | NumbersInFile, names: tuple[str, ...] | None, skipped: Skipped | None
    ) -> StoredRows:
        """Stored columns as rows."""
        width = len(self.inputs)
        target = None if self.target is None else width
        weight = None if self.weights is None else len(self.columns) - 1
        return StoredRows(numbers, width, names, target=target, weight=weight, skipped=skipped)


@dataclass(frozen=True)
class Keeping:
    """Where decoded rows are kept, and in which type."""

    memory: float = DEFAULT_MEMORY  # bytes; what is more goes to a scratch file
    scratch: str | Path | None = None  # folder for that file; None is the system's for temporary files
    dtype: str = "auto"  # float32 where that loses nothing

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, _DTYPES)
        one_number("memory", self.memory, "be a number of bytes, zero or more", lambda x: x >= 0.0)

    def store(self, width: int, smallest: np.dtype[Any]) -> RowStore:
        """A store for rows whose numbers fit ``smallest``."""
        return RowStore(width, smallest if self.dtype == "auto" else np.dtype(self.dtype), self.memory, self.scratch)


def read(
    source: Any,
    target: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    on_bad_rows: str = "error",
    memory: float = DEFAULT_MEMORY,
    scratch: str | Path | None = None,
    dtype: str = "auto",
) -> Rows:
    """Rows of files or tables, for every method that takes X: ``MercerGP().fit(certgp.read("*.parquet", target="y"))``.

    Parameters
    ----------
    source : a file, a folder, a glob or a list of these: Parquet, CSV and TSV (also .gz, .bz2, .zst, .lz4), Arrow and
        Feather, .npy, .npz (X, y). Or a pandas or polars frame or Arrow table, which is not copied; or a lazy polars
        frame, an Arrow dataset or reader, a Dask frame or array, which are read batch by batch
    target, weights : columns of y and of weights; None where there are none, as in rows to predict
    inputs, drop : the columns of X, by default all others but the dropped ones
    on_bad_rows : "error" refuses the first row that is missing a number, naming file and line or row group; "skip"
        leaves such rows out, and files that cannot be read, and says how many (``rows.skipped``, ``BadRowsWarning``)
    memory : bytes of decoded rows to keep in memory
    scratch : folder of the scratch file that takes what is more; it is gone when the rows are, or the process
    dtype : of decoded rows: "auto" is float32 where the files hold nothing longer

    Notes
    -----
    Everything is read and checked once, here. A fit then passes over decoded rows, as often as it likes. An .npy file
    of floats is used as it lies, without a copy. Arrays have no names: x0, x1, ... stand for their columns. Folders
    named column=value (year=2001/part.parquet) are columns of the files below them.
    """
    keeping, skipped = Keeping(memory, scratch, dtype), skipping(on_bad_rows)
    if is_frame(source):
        layout = Layout.of(frame_names(source), target, weights, inputs, drop)
        return _usable_rows(_frame_rows(source, layout), skipped)
    stream = as_stream(source)
    if stream is not None:
        rows = _store_stream(stream, Layout.of(stream.names, target, weights, inputs, drop), keeping, skipped)
    else:
        files, layout = open_files(source, skipped, target, weights, inputs, drop)
        rows = store_files(files, layout, keeping)
    if skipped is not None:
        skipped.warn()
    return rows


def open_files(
    source: Any,
    skipped: Skipped | None,
    target: str | None,
    weights: str | None,
    inputs: Sequence[str] | None,
    drop: Sequence[str],
) -> tuple[TableFiles, Layout]:
    """Files, of which only headers are read, and what their columns are for."""
    files = open_table(input_paths(source), skipped)
    if inputs is None and skipped is None:
        files.require_same_columns(except_for=[drop] if isinstance(drop, str) else drop)
    return files, Layout.of(files.names, target, weights, inputs, drop)


def choose_type(files: TableFiles, layout: Layout, dtype: str) -> np.dtype[Any]:
    """The type in which decoded rows are kept: that given, or for "auto" the shortest that holds all files' numbers."""
    types = {stored_type(file, layout.columns) for file in files.files} if dtype == "auto" else {np.dtype(dtype)}
    return max(types)


def store_files(files: TableFiles, layout: Layout, keeping: Keeping) -> StoredRows:
    """All rows of some files, decoded once."""
    names = None if files.nameless else layout.inputs
    plain = _lie_as_they_are(files, layout, keeping)
    if plain is not None:
        return layout.rows(plain, names, files.skipped)
    store = keeping.store(len(layout.columns), choose_type(files, layout, keeping.dtype))
    for part in files.parts(layout.columns):
        store.append(part.values)
    pa.default_memory_pool().release_unused()  # Arrow keeps what it has freed, as much again as the rows
    return layout.rows(store.numbers(), names, files.skipped)


def _lie_as_they_are(files: TableFiles, layout: Layout, keeping: Keeping) -> NumbersInFile | None:
    """The numbers of one .npy file whose columns already have the order wanted; None for all others."""
    if len(files.files) > 1 or layout.columns != files.names or files.skipped is not None:
        return None
    found = plain_rows(files.files[0])
    if found is None or keeping.dtype not in ("auto", found[2].name):
        return None
    return NumbersInFile(files.files[0].open("rb"), *found)


def _store_stream(stream: Stream, layout: Layout, keeping: Keeping, skipped: Skipped | None) -> StoredRows:
    """All rows of a stream, decoded once."""
    numbers = read_stream(stream, layout, keeping, skipped)
    return layout.rows(numbers, None if stream.nameless else layout.inputs, skipped)


def read_stream(
    stream: Stream, layout: Layout, keeping: Keeping, skipped: Skipped | None
) -> NDArray[Any] | NumbersInFile:
    """The columns of a layout of all rows of a stream."""
    store: RowStore | None = None
    for part in _usable_parts(stream, layout, skipped):
        store = keeping.store(len(layout.columns), np.dtype(np.float64)) if store is None else store
        store.append(part)
    if store is None:
        raise DataFileError(f"{stream.what} has no rows that can be used; at least one is needed")
    return store.numbers()


def _usable_parts(stream: Stream, layout: Layout, skipped: Skipped | None) -> Iterator[Numbers]:
    start = 0
    for part in stream.numbers(layout.columns):
        usable = np.isfinite(part).all(axis=1)
        if not usable.all() and skipped is None:
            row = int((~usable).argmax())
            column = layout.columns[int((~np.isfinite(part[row])).argmax())]
            raise DataFileError(
                f"column {column!r} of {stream.what} has a missing or infinite value in row {start + row + 1}; fill "
                "such values in or leave those rows out (on_bad_rows='skip')"
            )
        if skipped is not None:
            skipped.add_rows(stream.what, int((~usable).sum()))
        start += len(part)
        if usable.any():
            yield part[usable]


def _frame_rows(frame: Any, layout: Layout) -> Rows:
    """Columns of a frame in memory, of which nothing is copied."""
    names = frame_names(frame)
    y = None if layout.target is None else frame_column(frame, names.index(layout.target))
    rows: Rows = FrameRows(frame, y, [names.index(name) for name in layout.inputs])
    if layout.weights is None:
        return rows
    return WeightedRows(rows, frame_column(frame, names.index(layout.weights)).astype(np.float64))


def frame_names(frame: Any) -> list[str]:
    """Names of the columns of a frame."""
    return [str(name) for name in (frame.column_names if is_from(frame, "pyarrow", "Table") else frame.columns)]


def _usable_rows(rows: Rows, skipped: Skipped | None) -> Rows:
    """Rows of a frame without those that are missing a number, where these are to be left out."""
    if skipped is None:
        return rows
    usable, start = np.ones(rows.n_rows, dtype=bool), 0
    for X, y in rows.chunks(_CHUNK_ROWS):
        here = slice(start, start + len(X))
        usable[here] = np.isfinite(X).all(axis=1) & (True if y is None else np.isfinite(y))
        start += len(X)
    skipped.add_rows("the frame", int((~usable).sum()))
    skipped.warn()
    return PickedRows(rows, np.flatnonzero(usable)) if skipped else rows


def input_paths(source: Any) -> list[str | Path]:
    """Paths and globs that were given to be read."""
    paths = [source] if isinstance(source, (str, Path)) else source
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, (str, Path)) for path in paths):
        raise InvalidInputError(
            f"read takes files, folders and globs, a frame, a lazy frame, an Arrow dataset or reader, or a Dask frame "
            f"or array, found {type(source).__name__}; arrays in memory are given to fit as they are"
        )
    return list(paths)
