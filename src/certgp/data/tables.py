"""Tables in files: CSV, TSV, Parquet, .npz and .npy in; CSV, Parquet and .npz out.

Files are opened in two steps: ``open_table`` reads only their headers, so that a wrong column name is reported before a
long read, and ``TableFiles.read`` converts only the columns asked for, so that an identifier beside them does no harm.
"""

from __future__ import annotations

import glob
import os
import secrets
import shlex
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from certgp.data.csv_text import DELIMITERS, text_columns, text_header
from certgp.errors import DataFileError, HeaderWarning, warn_user

NAMELESS = (".npz", ".npy")  # arrays have no column names: x0, x1, ... stand in for them
READABLE = (*DELIMITERS, ".parquet", *NAMELESS)
WRITABLE = (".csv", ".parquet", ".npz")
Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class Table:
    """Named numeric columns of equal length."""

    names: tuple[str, ...]
    values: Array  # (N, number of columns)

    def split(self, target: str) -> tuple[Table, Array]:
        """The table without the target column, and that column."""
        require_columns([target], self.names)
        rest = [name for name in self.names if name != target]
        if not rest:
            raise DataFileError(f"{target!r} is the only column; at least one input column is needed")
        return self.select(rest), self.values[:, self.names.index(target)]

    def select(self, names: Sequence[str]) -> Table:
        """The named columns, in that order."""
        require_columns(names, self.names)
        return Table(tuple(names), self.values[:, [self.names.index(name) for name in names]])


@dataclass(frozen=True)
class TableFiles:
    """Files that form one table, of which only the headers have been read."""

    files: tuple[Path, ...]
    headers: tuple[tuple[str, ...], ...]

    @property
    def nameless(self) -> bool:
        """Are the names made up (x0, x1, ...), because arrays have none?"""
        return ending(self.files[0]) in NAMELESS

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that all files have, in the order of the first."""
        return tuple(name for name in self.headers[0] if all(name in header for header in self.headers))

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """The named columns of all rows; without names all columns, which must then be the same in every file."""
        if columns is None:
            self.require_same_columns()
        wanted = self.names if columns is None else tuple(columns)
        self.require(wanted)
        parts = [_read_columns(file, wanted) for file in self.files]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not len(values):
            raise DataFileError(f"{self.files[0]} has no rows; at least one is needed")
        return Table(wanted, values)

    def require(self, columns: Sequence[str]) -> None:
        """Refuse column names that one of the files does not have, and say which file that is."""
        for file, header in zip(self.files, self.headers, strict=True):
            require_columns(columns, header, f" in {file}")

    def require_same_columns(self, except_for: Sequence[str] = ()) -> None:
        """Refuse files that would silently lose a column because another file does not have it."""
        for file, header in zip(self.files, self.headers, strict=True):
            if (set(header) ^ set(self.headers[0])) - set(except_for):
                raise DataFileError(
                    f"{file} has other columns ({listed(header)}) than {self.files[0]} ({listed(self.headers[0])}); "
                    "give files with the same columns"
                )


def open_table(paths: Sequence[str | Path]) -> TableFiles:
    """One table from one or several files or globs, headers only."""
    files = _expand(paths)
    kinds = {ending(file) in NAMELESS for file in files}
    if len(kinds) > 1:
        arrays = next(file for file in files if ending(file) in NAMELESS)
        raise DataFileError(f"{arrays} has no column names but other files have; give files of one kind")
    return TableFiles(tuple(files), tuple(_header(file) for file in files))


def read_table(paths: Sequence[str | Path], columns: Sequence[str] | None = None) -> Table:
    """Header and rows of ``open_table`` in one step."""
    return open_table(paths).read(columns)


def require_columns(wanted: Sequence[str], names: Sequence[str], where: str = "") -> None:
    """Refuse column names that are not there, and say which ones are."""
    missing = [name for name in wanted if name not in names]
    if missing:
        noun = "there is no column" if len(missing) == 1 else "there are no columns"
        raise DataFileError(f"{noun} {listed(missing)}{where}; the columns are: {listed(names)}")


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in quotes, which show stray spaces, for a message that stays one line however wide the table is."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def write_table(path: str | Path, columns: Mapping[str, Array]) -> None:
    """Write columns by the file's ending; the file appears whole or not at all."""
    path = Path(path)
    check_writable(path)
    with replacing(path) as temporary, temporary.open("wb") as stream:
        if path.suffix.lower() == ".npz":
            # numpy types every keyword as its allow_pickle flag, hence the ignore
            np.savez(stream, **{name: np.asarray(values) for name, values in columns.items()})  # type: ignore[arg-type]
            return
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        write = pa_csv.write_csv if path.suffix.lower() == ".csv" else pa_parquet.write_table
        write(table, stream)


def csv_bytes(columns: Mapping[str, Array]) -> bytes:
    """Columns as the text of a CSV file."""
    stream = pa.BufferOutputStream()
    pa_csv.write_csv(pa.table({name: pa.array(values) for name, values in columns.items()}), stream)
    return bytes(stream.getvalue())


def check_writable(path: Path, endings: Sequence[str] = WRITABLE) -> None:
    """Refuse an output path that cannot work, before any long computation; no ``endings`` means any will do."""
    if endings and path.suffix.lower() not in endings:
        found = f"the ending {path.suffix}" if path.suffix else "no ending"
        raise DataFileError(f"{path} has {found}, so its format is unknown; use one of {', '.join(endings)}")
    if path.is_dir():
        raise DataFileError(f"{path} is a directory; give the name of a file")
    if not path.parent.is_dir():
        raise DataFileError(f"the directory {path.parent} does not exist; create it first")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()  # permissions do not tell: /proc looks writable to root
    except OSError as error:
        raise DataFileError(
            f"the directory {path.parent} cannot be written to ({error.strerror}); choose another one"
        ) from error


def ending(path: Path) -> str:
    """What tells a file's format; a compressed one has two parts, as in .csv.gz."""
    name = path.name.lower()
    return next((known for known in READABLE if name.endswith(known)), path.suffix.lower())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well and vanishes when it does not."""
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _expand(paths: Sequence[str | Path]) -> list[Path]:
    files = [file for given in map(str, paths) for file in _matches(given)]
    if not files:
        raise DataFileError("no data file was given; name at least one")
    for file in files:
        if file.is_dir():
            raise DataFileError(f"{file} is a directory; name its files, or use a glob such as '{file}/*.csv'")
        if not file.is_file():
            raise DataFileError(f"{file} does not exist; check the path")
        if ending(file) not in READABLE:
            raise DataFileError(f"{file} has an unknown ending; readable files end in {', '.join(READABLE)}")
    return files


def _matches(given: str) -> list[Path]:
    if Path(given).exists() or not glob.has_magic(given):  # a file may be named data[1].csv
        return [Path(given)]
    found = sorted(glob.glob(given, recursive=True))
    if not found:
        raise DataFileError(f"no file matches {given}; check the pattern and the directory")
    return [Path(name) for name in found]


def _header(path: Path) -> tuple[str, ...]:
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
                names = _column_labels(_stored_shape(stream), path)
    if kind in DELIMITERS and all(map(_is_number, names)):
        warn_user(
            f"all column names of {path} are numbers ({listed(names, most=3)}): the first line is read as names, so if "
            "it is a row of data, write a line of names above it",
            HeaderWarning,
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(f"{path} has more than one column named {listed(twice)}; rename them")
    return names


def _npz_header(path: Path) -> tuple[str, ...]:
    with zipfile.ZipFile(path) as archive:
        held = [name.removesuffix(".npy") for name in archive.namelist()]
        if "X" not in held:
            found = ", ".join(held) or "nothing"
            raise DataFileError(f"{path} holds {found}; an .npz file needs an array X (N, D), and y (N,) to learn from")
        with archive.open("X.npy") as stream:
            names = _column_labels(_stored_shape(stream), path)
        return (*names, "y") if "y" in held else names


def _stored_shape(stream: IO[bytes]) -> tuple[int, ...]:
    version = npy_format.read_magic(stream)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape: tuple[int, ...] = read(stream)[0]
    return shape


def _column_labels(shape: tuple[int, ...], path: Path) -> tuple[str, ...]:
    if len(shape) not in (1, 2):
        raise DataFileError(f"{path} holds an array of shape {shape}; rows and columns (N, D) are needed")
    return tuple(f"x{i}" for i in range(1 if len(shape) == 1 else shape[1]))


def _read_columns(path: Path, names: tuple[str, ...]) -> Array:
    kind = ending(path)
    with _damage_reported(path):
        if kind in DELIMITERS:
            values = _from_arrow(text_columns(path, DELIMITERS[kind], names), names, path)
        elif kind == ".parquet":
            values = _from_arrow(pa_parquet.read_table(path, columns=list(names)), names, path)
        else:
            values = _from_numpy(path, names)
    _check_finite(values, names, path)
    return values


def _from_arrow(table: pa.Table, names: tuple[str, ...], path: Path) -> Array:
    if not table.num_rows:
        return np.empty((0, len(names)))
    return np.column_stack([_numeric_column(table.column(name), name, path) for name in names])


def _numeric_column(column: pa.ChunkedArray, name: str, path: Path) -> Array:
    kind, is_kind = column.type, pa.types
    numeric = (is_kind.is_integer, is_kind.is_floating, is_kind.is_boolean, is_kind.is_decimal, is_kind.is_null)
    if not any(check(kind) for check in numeric):
        at, example = _first_text(column)
        raise DataFileError(
            f"column {name!r} of {path} is not numeric (row {at} holds {example!r}); encode it as numbers, or leave it "
            f"out of the fit (--drop {shlex.quote(name)})"
        )
    return np.asarray(column.to_numpy(), dtype=np.float64)  # nulls become NaN


def _first_text(column: pa.ChunkedArray) -> tuple[int, str]:
    """Row, from 1, and text of the first value that is not a number: the one that made the column what it is."""
    texts = [str(value) for value in column.to_pylist()]
    at = next((i for i, text in enumerate(texts) if not _is_number(text)), 0)
    return at + 1, texts[at][:40]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _from_numpy(path: Path, names: tuple[str, ...]) -> Array:
    with path.open("rb") as stream:  # np.load(path) would leave a damaged archive open
        loaded = np.load(stream, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            X, y = loaded, None
        else:
            X, y = loaded["X"], loaded["y"] if "y" in loaded.files else None
    X = _as_float(X, path).reshape(len(X), -1)
    have = [f"x{i}" for i in range(X.shape[1])]
    if y is not None:
        target = _as_float(y, path).reshape(-1)
        if len(target) != len(X):
            raise DataFileError(f"in {path} X has {len(X)} rows but y has {len(target)} values; give one y per row")
        X, have = np.column_stack([X, target]), [*have, "y"]
    return X if have == list(names) else X[:, [have.index(name) for name in names]]


def _as_float(values: NDArray[np.generic], path: Path) -> Array:
    if values.dtype.kind not in "fiub":
        raise DataFileError(f"{path} holds values of type {values.dtype}; store numbers")
    return values.astype(np.float64, copy=False)


def _check_finite(values: Array, names: tuple[str, ...], path: Path) -> None:
    for j, name in enumerate(names):
        bad = np.flatnonzero(~np.isfinite(values[:, j]))
        if len(bad):
            raise DataFileError(
                f"column {name!r} of {path} has {len(bad)} missing or infinite value(s), first in row {bad[0] + 1}; "
                "fill them or leave those rows out"
            )


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
