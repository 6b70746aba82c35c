"""Rows of NumPy's files, some at a time: .npy and .npz."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from certgp.errors import DataFileError

Array = NDArray[np.float64]
_PART_NUMBERS = 2**18  # read at a time from arrays and Parquet


def array_parts(inputs: IO[bytes], target: IO[bytes] | None, names: Sequence[str], path: Path) -> Iterator[Array]:
    """Stored X (N, D), and y (N,) where it is asked for, as named columns."""
    (n, width), blocks = _stored_rows(inputs, path)
    targets: Iterable[NDArray[Any] | None] = repeat(None)
    if target is not None:
        (count, size), targets = _stored_rows(target, path, part_rows(width))
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
    shape, by_column, dtype = stored_layout(stream)
    if dtype.kind not in "fiub":
        raise DataFileError(f"{path} holds values of type {dtype}; store numbers")
    n, width = shape[0], math.prod(shape[1:])
    rows = part_rows(width) if at_a_time is None else at_a_time

    def read(count: int) -> NDArray[Any]:
        data = stream.read(count * width * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(count, width, order="F" if by_column else "C")

    if by_column and width > 1:  # its rows lie scattered over the whole file
        whole = read(n)
        return (n, width), (whole[start : start + rows] for start in range(0, n, rows))
    return (n, width), (read(min(rows, n - start)) for start in range(0, n, rows))


def stored_layout(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape of a stored array, whether it is stored column by column, and its type."""
    version = npy_format.read_magic(stream)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    layout: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(stream)
    return layout


def archive_labels(path: Path) -> tuple[str, ...]:
    """Names that stand in for the columns of X in an .npz file, and y where it has one."""
    with zipfile.ZipFile(path) as archive:
        held = [name.removesuffix(".npy") for name in archive.namelist()]
        if "X" not in held:
            found = ", ".join(held) or "nothing"
            raise DataFileError(f"{path} holds {found}; an .npz file needs an array X (N, D), and y (N,) to learn from")
        with archive.open("X.npy") as stream:
            names = column_labels(stored_layout(stream)[0], path)
        return (*names, "y") if "y" in held else names


def column_labels(shape: tuple[int, ...], path: Path) -> tuple[str, ...]:
    """x0, x1, ... for the columns of an array of this shape."""
    if len(shape) not in (1, 2):
        raise DataFileError(f"{path} holds an array of shape {shape}; rows and columns (N, D) are needed")
    return tuple(f"x{i}" for i in range(1 if len(shape) == 1 else shape[1]))


def part_rows(width: int) -> int:
    """How many rows of so many columns to read at a time."""
    return max(1, _PART_NUMBERS // max(width, 1))
