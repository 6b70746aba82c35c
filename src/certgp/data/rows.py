"""Rows in the user's units: from arrays, memory maps and frames, or from a class of the user's own."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import FLOATS, NUMBERS, TARGET, Numbers, as_numbers, columns_hold, dates_error, is_date_type
from certgp.errors import InvalidInputError

Positions = slice | NDArray[np.int64]
R = TypeVar("R")
Weights = NDArray[np.float64] | None
BlockTask = Callable[[slice, Numbers, Numbers | None, Weights], R]
_FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))
_FLOAT32_NAMES = ("float32", "float")  # "float" is Arrow's word


class Rows(ABC):
    """Rows of inputs, with or without a target, that can be read again and again.

    ``fit``, ``predict`` and all other methods that take X also take an object of this class. To use rows that are
    neither an array nor a frame, derive a class from it that sets the two numbers and defines ``take``.
    """

    n_rows: int
    n_columns: int  # of the inputs
    names: tuple[str, ...] | None = None  # of the input columns, where they have any
    weights_stay: bool = False  # with the rows, which are elsewhere

    @abstractmethod
    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        """X (n, D) and y (n,) at these positions: a slice, or row numbers in any order. y is None without a target, and
        (n, q) of several outputs, NaN where one is missing.
        """

    def weights(self, positions: Positions) -> NDArray[np.float64] | None:
        """Weights (n,) at these positions, the noise variance of a row being s2 / weight; None where all are one."""
        return None

    def chunks(self, rows: int) -> Iterator[tuple[Numbers, Numbers | None]]:
        """All rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.take(slice(start, min(start + rows, self.n_rows)))

    def map(self, task: Callable[[Numbers, Numbers | None], R], rows: int) -> Iterator[R]:
        """task(X, y) of all rows in order, at most ``rows`` at a time; on a cluster, tasks run where the rows are."""
        for X, y in self.chunks(rows):
            yield task(X, y)

    def fold(self, task: BlockTask[R], rows: int) -> R:
        """sum over blocks of task(their positions, X, y, weights), likewise."""
        return reduce(add, self.blocks(task, rows))

    def blocks(self, task: BlockTask[R], rows: int) -> Iterator[R]:
        """The same block by block, read here."""
        start = 0
        for X, y in self.chunks(rows):
            here = slice(start, min(start + rows, self.n_rows))
            yield task(here, X, y, self.weights(here))
            start = here.stop

    def pick(self, positions: NDArray[np.int64]) -> Rows:
        """The rows at these positions; nothing is copied before it is read."""
        return PickedRows(self, positions)

    @property
    def labels(self) -> tuple[str, ...]:
        """What messages call the columns: their names, or else their numbers."""
        return self.names or tuple(map(str, range(self.n_columns)))


class ArrayRows(Rows):
    """Rows of an array or a memory map, which is not copied; other types than floats are converted as they are read."""

    def __init__(self, X: NDArray[Any], y: Any = None, names: Sequence[str] | None = None) -> None:
        if X.ndim != 2:
            raise InvalidInputError(f"X must have rows and columns (N, D), found an array of shape {X.shape}")
        self.n_rows, self.n_columns = X.shape
        if names is not None and len(names) != self.n_columns:
            raise InvalidInputError(f"names has {len(names)} entries but X has {self.n_columns} columns; give one each")
        self.names = None if names is None else tuple(names)
        self._X, self._y = X, _target(y, self.n_rows)
        if is_date_type(X.dtype):
            raise dates_error(columns_hold(self.labels))

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        X, y = self._X[positions], None if self._y is None else self._y[positions]
        if X.dtype.kind in NUMBERS:
            return X if X.dtype in FLOATS else X.astype(np.float64), y
        numbers, converted = _row_numbers(self.n_rows, positions), np.empty(X.shape)
        for j, label in enumerate(self.labels):
            converted[:, j] = as_numbers(X[:, j], columns_hold([label]), numbers)
        return converted, y


class FrameRows(Rows):
    """Rows of a pandas or polars frame or an Arrow table; only the rows that are read are converted.

    ``columns`` are the numbers of the input columns, by default all.
    """

    def __init__(self, frame: Any, y: Any = None, columns: Sequence[int] | None = None) -> None:
        arrow = is_from(frame, "pyarrow", "Table")
        names, types = (frame.column_names, frame.schema.types) if arrow else (list(frame.columns), list(frame.dtypes))
        self._columns = tuple(range(frame.shape[1])) if columns is None else tuple(columns)
        names, types = [names[j] for j in self._columns], [types[j] for j in self._columns]
        self.n_rows, self.n_columns = frame.shape[0], len(self._columns)
        self.names = tuple(names) if all(isinstance(name, str) for name in names) else None
        self._frame, self._y = frame, _target(y, self.n_rows)
        dated = [name for name, kind in zip(self.labels, types, strict=True) if is_date_type(kind)]
        if dated:
            raise dates_error(columns_hold(dated))
        self._dtype = np.float32 if all(str(kind).lower() in _FLOAT32_NAMES for kind in types) else np.float64

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        some, numbers = _pick(self._frame, positions), _row_numbers(self.n_rows, positions)
        X = np.empty((some.shape[0], self.n_columns), dtype=self._dtype)
        for j, (column, label) in enumerate(zip(self._columns, self.labels, strict=True)):
            X[:, j] = as_numbers(frame_column(some, column), columns_hold([label]), numbers)
        return X, None if self._y is None else self._y[positions]


class PickedRows(Rows):
    """Some rows of others, by their positions in them; nothing is copied before it is read."""

    def __init__(self, rows: Rows, positions: NDArray[np.int64]) -> None:
        self._rows, self._positions = rows, positions
        self.n_rows, self.n_columns, self.names = len(positions), rows.n_columns, rows.names

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        return self._rows.take(self._positions[positions])

    def weights(self, positions: Positions) -> NDArray[np.float64] | None:
        return self._rows.weights(self._positions[positions])


class WeightedRows(Rows):
    """Rows of others with weights (N,) of their own, or with none."""

    def __init__(self, rows: Rows, weights: NDArray[np.float64] | None) -> None:
        self._rows, self._weights = rows, weights
        self.n_rows, self.n_columns, self.names = rows.n_rows, rows.n_columns, rows.names

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        return self._rows.take(positions)

    def weights(self, positions: Positions) -> NDArray[np.float64] | None:
        return None if self._weights is None else self._weights[positions]


def weigh_rows(rows: Rows, sample_weight: Any = None) -> Rows:
    """The rows with these weights (N,), or with their own where none are given, checked. Rows of weight zero are left
    out; weights that are all one are none.
    """
    own = rows.weights(slice(None))
    if sample_weight is not None and own is not None:
        raise InvalidInputError("the rows hold weights themselves; leave sample_weight out")
    if sample_weight is not None and rows.weights_stay:
        raise InvalidInputError("sample_weight is for rows in this process; name their column with weights= instead")
    given = own if sample_weight is None else sample_weight
    if given is None:
        return rows
    weights = check_weights(given, rows.n_rows)
    present = np.flatnonzero(weights)
    if len(present) < len(weights):
        rows, weights = rows.pick(present), weights[present]
    if rows.weights_stay:
        return rows
    return WeightedRows(rows, None if (weights == 1.0).all() else weights)


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Weights (N,) as numbers: finite, not below zero, not all zero; a single number serves all rows."""
    try:
        values = np.array(sample_weight, dtype=np.float64)  # a copy: tensors have no negative strides
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold one number per row, found {sample_weight!r}") from error
    values = np.full(n_rows, float(values)) if values.ndim == 0 else values
    if values.ndim != 1:
        raise InvalidInputError(f"Sample weights must be 1D array or scalar, found shape {values.shape}")
    if len(values) != n_rows:
        raise InvalidInputError(
            f"sample_weight.shape == {values.shape}, expected {(n_rows,)}: give one weight per row of X"
        )
    for wrong, what in ((~np.isfinite(values), "NaN or infinity"), (values < 0.0, "a negative number")):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"sample_weight contains {what} in row {row} (counted from 0); weights are numbers >= 0, the noise "
                "variance of a row being s2 / weight, and 0 leaves the row out"
            )
    if not values.any():
        raise InvalidInputError("sample_weight is zero for every row, so none is left to learn from")
    return values


def as_rows(X: Any, y: Any = None) -> Rows:
    """Rows of whatever holds them: an array, a memory map, a list, a pandas or polars frame, an Arrow table.

    y (N,), or (N, q) of several outputs, may be an array, a list, a series or a frame. A ``Rows`` object is returned as
    it is; it holds its own target, so y must then be None.
    """
    if isinstance(X, Rows):
        if y is not None:
            raise InvalidInputError("X is a Rows object, which holds its target itself; leave y out")
        return X
    if is_frame(X):
        return FrameRows(X, y)
    array = np.asarray(X)  # of a memory map: a view of it
    if array.dtype.kind not in NUMBERS:  # objects and texts are slow to convert: once, not at every pass
        array, _ = ArrayRows(array).take(slice(None))
    return ArrayRows(array, y)


def read_target(rows: Rows, chunk_rows: int = 65_536) -> NDArray[np.float64]:
    """y (N,), or (N, q) of several outputs, of all rows in float64."""
    parts = [y for y in rows.map(_target_of, chunk_rows) if y is not None]
    if not parts:
        raise InvalidInputError("the rows hold no target y; give y, or rows whose take() returns it")
    return np.concatenate(parts, dtype=np.float64)


def _target_of(_: Numbers, y: Numbers | None) -> Numbers | None:
    return y


def is_frame(X: Any) -> bool:
    """Is this a frame that can be read in chunks?"""
    return any(is_from(X, *kind) for kind in _FRAMES)


def is_from(value: Any, library: str, name: str) -> bool:
    """Is this an object of a class of another library? Only one that was imported can have made it."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, name))


def _target(y: Any, n_rows: int) -> Numbers | None:
    """y (N,) as an array of floats; (N, q) of several outputs."""
    if y is None:
        return None
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        values = np.stack([as_numbers(column, TARGET, range(len(values))) for column in values.T], 1)
    else:
        values = as_numbers(values.reshape(-1), TARGET, range(values.size))
    if len(values) != n_rows:
        raise InvalidInputError(f"X has {n_rows} rows but y has {len(values)} values; give one y per row")
    return values


def _pick(frame: Any, positions: Positions) -> Any:
    """Some rows of a frame; those of a slice are not copied."""
    if is_from(frame, "pandas", "DataFrame"):
        return frame.iloc[positions]
    by_number = is_from(frame, "pyarrow", "Table") and not isinstance(positions, slice)
    return frame.take(positions) if by_number else frame[positions]


def frame_column(frame: Any, j: int) -> NDArray[Any]:
    """One column of a frame as an array of any type; missing numbers are NaN."""
    if not is_from(frame, "pandas", "DataFrame"):
        column = frame.column(j) if is_from(frame, "pyarrow", "Table") else frame.to_series(j)
        return np.asarray(column.to_numpy())
    series = frame.iloc[:, j]
    if isinstance(series.dtype, np.dtype) or series.dtype.kind not in "fiub":
        return np.asarray(series.to_numpy())
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))  # nullable and Arrow-backed columns


def _row_numbers(n_rows: int, positions: Positions) -> Iterable[int]:
    """What messages call the rows at these positions."""
    return range(n_rows)[positions] if isinstance(positions, slice) else positions
