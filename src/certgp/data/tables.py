"""Tables in files: CSV, Parquet, .npz and .npy in; CSV, Parquet and .npz out."""

from __future__ import annotations

import glob
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from certgp.errors import DataFileError

READABLE = (".csv", ".parquet", ".npz", ".npy")
WRITABLE = (".csv", ".parquet", ".npz")
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Named numeric columns of equal length."""

    names: tuple[str, ...]
    values: Array  # (N, number of columns)

    def split(self, target: str) -> tuple[Table, Array]:
        """The table without the target column, and that column."""
        if target not in self.names:
            raise DataFileError(f"there is no column {target!r}; the columns are: {', '.join(self.names)}")
        at = self.names.index(target)
        rest = [i for i in range(len(self.names)) if i != at]
        if not rest:
            raise DataFileError(f"{target!r} is the only column; at least one input column is needed")
        return Table(tuple(self.names[i] for i in rest), self.values[:, rest]), self.values[:, at]

    def select(self, names: Sequence[str]) -> Table:
        """The named columns, in that order."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise DataFileError(f"missing column(s) {', '.join(missing)}; the file has: {', '.join(self.names)}")
        return Table(tuple(names), self.values[:, [self.names.index(name) for name in names]])


def read_table(paths: Sequence[str | Path]) -> Table:
    """One table from one or several files or globs; later files must have the columns of the first."""
    files = _expand(paths)
    tables = [_read_file(file) for file in files]
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        if set(table.names) != set(first.names):
            raise DataFileError(f"{file} has other columns than {files[0]}: {', '.join(table.names)}")
    values = first.values if len(tables) == 1 else np.concatenate([t.select(first.names).values for t in tables])
    if values.shape[0] == 0:
        raise DataFileError(f"{files[0]} has no rows")
    return Table(first.names, values)


def write_table(path: str | Path, columns: Mapping[str, Array]) -> None:
    """Write columns by the file's ending; the file appears whole or not at all."""
    path = Path(path)
    check_writable(path)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    handle, temporary = tempfile.mkstemp(dir=path.parent or Path(), suffix=path.suffix)
    os.close(handle)
    try:
        if path.suffix == ".csv":
            pa_csv.write_csv(table, temporary)
        elif path.suffix == ".parquet":
            pa_parquet.write_table(table, temporary)
        else:
            np.savez(temporary, **{name: np.asarray(values) for name, values in columns.items()})
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Refuse an output path that cannot work, before any long computation."""
    if path.suffix not in WRITABLE:
        raise DataFileError(f"cannot write {path.suffix or 'a file without an ending'}; use one of {', '.join(WRITABLE)}")
    if not path.parent.is_dir():
        raise DataFileError(f"the directory {path.parent} does not exist; create it first")


def _expand(paths: Sequence[str | Path]) -> list[Path]:
    files: list[Path] = []
    for given in map(str, paths):
        found = sorted(glob.glob(given)) if glob.has_magic(given) else [given]
        if not found:
            raise DataFileError(f"no file matches {given}")
        files += [Path(name) for name in found]
    if not files:
        raise DataFileError("no data file was given")
    for file in files:
        if not file.is_file():
            raise DataFileError(f"{file} does not exist or is not a file")
        if file.suffix not in READABLE:
            raise DataFileError(f"{file} has an unknown ending; readable files end in {', '.join(READABLE)}")
    return files


def _read_file(path: Path) -> Table:
    try:
        if path.suffix == ".csv":
            return _from_arrow(pa_csv.read_csv(path), path)
        if path.suffix == ".parquet":
            return _from_arrow(pa_parquet.read_table(path), path)
        return _from_numpy(path)
    except (pa.ArrowException, OSError, EOFError, zipfile.BadZipFile, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path} cannot be read as {path.suffix[1:]}: {_first_line(error)}") from error


def _from_arrow(table: pa.Table, path: Path) -> Table:
    names = tuple(str(name) for name in table.column_names)
    if len(set(names)) != len(names):
        raise DataFileError(f"{path} has two columns of the same name; rename one")
    return Table(names, np.column_stack([_numeric_column(table.column(i), names[i], path) for i in range(len(names))]))


def _numeric_column(column: pa.ChunkedArray, name: str, path: Path) -> Array:
    if column.null_count:
        raise DataFileError(f"column {name!r} of {path} has {column.null_count} missing value(s); fill them or drop the rows")
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        example = next((str(v) for v in column.to_pylist()[:1]), "")
        raise DataFileError(f"column {name!r} of {path} is not numeric (first value {example!r}); encode it as numbers or drop it")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _from_numpy(path: Path) -> Table:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        values = loaded if loaded.ndim == 2 else loaded.reshape(len(loaded), -1)
        return Table(tuple(f"x{i}" for i in range(values.shape[1])), _as_float(values, path))
    with loaded as archive:
        if "X" not in archive.files:
            raise DataFileError(f"{path} holds {', '.join(archive.files) or 'nothing'}; an .npz file needs an array X (N, D) and y (N,)")
        X = _as_float(archive["X"], path)
        X = X[:, None] if X.ndim == 1 else X
        names = tuple(f"x{i}" for i in range(X.shape[1]))
        if "y" not in archive.files:
            return Table(names, X)
        y = _as_float(archive["y"], path).reshape(-1)
        if len(y) != len(X):
            raise DataFileError(f"{path}: X has {len(X)} rows but y has {len(y)}")
        return Table((*names, "y"), np.column_stack([X, y]))


def _as_float(values: NDArray[np.generic], path: Path) -> Array:
    if values.dtype.kind not in "fiub":
        raise DataFileError(f"{path} holds {values.dtype} values; numbers are needed")
    return values.astype(np.float64)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
