"""Tables in files: CSV, TSV, Parquet, Arrow, .npz and .npy in; CSV, Parquet and .npz out.

Files are opened in two steps: ``open_table`` reads only their headers, so that a wrong column name is reported before a
long read, and ``TableFiles.read`` converts only the columns asked for, so that an identifier beside them does no harm.
"""

from __future__ import annotations

import glob
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from certgp.data.folders import folder_columns
from certgp.data.reading import NAMELESS, READABLE, Array, Part, ending, listed, read_header, read_parts
from certgp.data.skipped import Skipped
from certgp.data.store import RowStore
from certgp.errors import DataFileError

WRITABLE = (".csv", ".parquet", ".npz")
Columns = Mapping[str, Array | NDArray[np.int64]]
RowNumbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Named numeric columns of equal length."""

    names: tuple[str, ...]
    values: Array  # (N, number of columns)


@dataclass(frozen=True)
class FittedTable:
    """The layout of the table behind a fit, so that its inputs and its split can be found again; it holds no data."""

    n_rows: int  # with those held out for a test
    test_fraction: float
    seed: int  # of the split
    width: int | None = None  # number of columns of an array, where columns have no names
    positions: tuple[int, ...] = ()  # of the inputs in that array
    weights: str | None = None  # the column of weights
    group: str | None = None  # the column whose groups were held out whole
    time: str | None = None  # the column whose latest rows were held out
    left_out: tuple[tuple[str, str], ...] = ()  # columns of a table of numbers that were not used, and why


@dataclass(frozen=True)
class TableFiles:
    """Files that form one table, of which only the headers have been read."""

    files: tuple[Path, ...]
    headers: tuple[tuple[str, ...], ...]
    skipped: Skipped | None = None  # counts bad rows and files, where these are left out instead of refused

    @property
    def nameless(self) -> bool:
        """Are the names made up (x0, x1, ...), because arrays have none?"""
        return ending(self.files[0]) in NAMELESS

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that all files have, in the order of the first."""
        return tuple(name for name in self.headers[0] if all(name in header for header in self.headers))

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """The named columns of all rows in memory; without names all columns, which must be the same in every file."""
        if columns is None:
            self.require_same_columns()
        wanted = self.names if columns is None else tuple(columns)
        store = RowStore(len(wanted), np.dtype(np.float64), memory=np.inf)
        for part in self.parts(wanted):
            store.append(part.values)
        return Table(wanted, store.numbers()[:])

    def chunks(self, columns: Sequence[str], rows: int) -> Iterator[tuple[RowNumbers, Array]]:
        """The named columns of all rows, ``rows`` at a time (the last time fewer), whatever the files' own blocks, and
        the numbers of these rows in all files together, from 0.
        """
        chunk, numbers, filled = np.empty((rows, len(columns))), np.empty(rows, np.int64), 0
        for part in self.parts(columns):
            taken = 0
            while taken < len(part.rows):
                count = min(rows - filled, len(part.rows) - taken)
                chunk[filled : filled + count] = part.values[taken : taken + count]
                numbers[filled : filled + count] = part.rows[taken : taken + count]
                filled, taken = filled + count, taken + count
                if filled == rows:
                    yield numbers, chunk
                    chunk, numbers, filled = np.empty((rows, len(columns))), np.empty(rows, np.int64), 0
        if filled:
            yield numbers[:filled], chunk[:filled]

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """The named columns of all rows, a few thousand at a time; rows are numbered through all files."""
        self.require(columns)
        before = found = 0
        for file in self.files:
            behind = before
            for part in read_parts(file, columns, self.skipped):
                behind = before + part.behind
                found += len(part.rows)
                yield Part(before + part.rows, part.values, behind)
            before = behind
        if not found:
            raise DataFileError(f"{self.files[0]} has no rows that can be used; at least one is needed")

    def absolute(self) -> TableFiles:
        """The same files by names that hold in any working directory. A folder above that would bring a column along
        (year=2001) stays out.
        """
        pairs = [(file, file.absolute()) for file in self.files]
        return replace(self, files=tuple(b if folder_columns(a) == folder_columns(b) else a for a, b in pairs))

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


def open_table(paths: Sequence[str | Path], skipped: Skipped | None = None, sep: str | None = None) -> TableFiles:
    """One table from one or several files, folders or globs, headers only; ``sep`` separates the columns of texts where
    it is not that of the files' ending.

    With ``skipped``, files that cannot be read or that lack columns which most others have are left out and named
    there.
    """
    files = _expand(paths)
    kinds = {ending(file) in NAMELESS for file in files}
    if len(kinds) > 1:
        arrays = next(file for file in files if ending(file) in NAMELESS)
        raise DataFileError(f"{arrays} has no column names but other files have; give files of one kind")
    if skipped is None:
        return TableFiles(tuple(files), tuple(read_header(file, sep) for file in files))
    return _usable_files(files, skipped, sep)


def _usable_files(files: Sequence[Path], skipped: Skipped, sep: str | None) -> TableFiles:
    """The files that have the columns of most, in any order and among others; the rest is named in ``skipped``."""
    headers: dict[Path, tuple[str, ...]] = {}
    for file in files:
        try:
            headers[file] = read_header(file, sep)
        except DataFileError as error:
            skipped.add_file(file, str(error))
    if not headers:
        raise DataFileError(f"none of {len(files)} file(s) can be read; {skipped}")
    kinds = [frozenset(header) for header in headers.values()]
    usual = max(kinds, key=kinds.count)
    usable = {file: header for file, header in headers.items() if usual <= set(header)}
    for file in headers.keys() - usable.keys():
        skipped.add_file(file, f"it has no column {listed(sorted(usual - set(headers[file])))}, which most files have")
    return TableFiles(tuple(usable), tuple(usable.values()), skipped)


def read_table(paths: Sequence[str | Path], columns: Sequence[str] | None = None) -> Table:
    """Header and rows of ``open_table`` in one step."""
    return open_table(paths).read(columns)


def require_columns(wanted: Sequence[str], names: Sequence[str], where: str = "") -> None:
    """Refuse column names that are not there, and say which ones are."""
    missing = [name for name in wanted if name not in names]
    if missing:
        noun = "there is no column" if len(missing) == 1 else "there are no columns"
        raise DataFileError(f"{noun} {listed(missing)}{where}; the columns are: {listed(names)}")


def write_table(path: str | Path, columns: Columns) -> None:
    """Write columns by the file's ending; the file appears whole or not at all."""
    with writing_table(path) as write:
        write(columns)


@contextmanager
def writing_table(path: str | Path) -> Iterator[Callable[[Columns], None]]:
    """A function that writes some rows of all columns; the file appears when the block ends, whole or not at all."""
    path = Path(path)
    check_writable(path)
    with replacing(path) as temporary, temporary.open("wb") as stream, writing_to(stream, path.suffix.lower()) as write:
        yield write


@contextmanager
def writing_to(stream: IO[bytes], suffix: str) -> Iterator[Callable[[Columns], None]]:
    """The same on an open stream, in the format of an ending."""
    opened: list[pa_csv.CSVWriter | pa_parquet.ParquetWriter] = []
    gathered: dict[str, list[NDArray[Any]]] = {}

    def write(columns: Columns) -> None:
        if suffix == ".npz":
            for name, values in columns.items():
                gathered.setdefault(name, []).append(np.asarray(values))
            return
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if not opened:  # only now are the types known
            kind = pa_csv.CSVWriter if suffix == ".csv" else pa_parquet.ParquetWriter
            opened.append(stack.enter_context(kind(stream, table.schema)))
        opened[0].write_table(table)

    with ExitStack() as stack:
        yield write
    if suffix == ".npz":
        # numpy types every keyword as its allow_pickle flag, hence the ignore
        np.savez(stream, **{name: np.concatenate(values) for name, values in gathered.items()})  # type: ignore[arg-type]


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
    files = [file for given in map(str, paths) for found in _matches(given) for file in _files_in(found)]
    if not files:
        raise DataFileError("no data file was given; name at least one")
    for file in files:
        if not file.is_file():
            raise DataFileError(f"{file} does not exist; check the path")
        if ending(file) not in READABLE:
            raise DataFileError(f"{file} has an unknown ending; readable files end in {', '.join(READABLE)}")
    return files


def _files_in(path: Path) -> list[Path]:
    """The files of a folder and the folders in it, in the order of their names; those that begin with _ or . are notes
    of the programs that wrote them.
    """
    if not path.is_dir():
        return [path]
    below = (file for file in sorted(path.rglob("*")) if file.is_file() and ending(file) in READABLE)
    files = [file for file in below if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)]
    if not files:
        raise DataFileError(f"the folder {path} holds no readable file; they end in {', '.join(READABLE)}")
    return files


def _matches(given: str) -> list[Path]:
    if Path(given).exists() or not glob.has_magic(given):  # a file may be named data[1].csv
        return [Path(given)]
    found = sorted(glob.glob(given, recursive=True))
    if not found:
        raise DataFileError(f"no file matches {given}; check the pattern and the directory")
    return [Path(name) for name in found]
