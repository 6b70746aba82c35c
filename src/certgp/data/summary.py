"""All that a fit must know of its rows beforehand, from one pass over them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import Numbers
from certgp.data.copies import row_keys
from certgp.data.rows import Rows
from certgp.data.spread import without_far_numbers
from certgp.errors import InvalidInputError

Array = NDArray[np.float64]
BLOCK_ROWS = 65_536
DISTINCT_LIMIT = 20_000
_DIGEST_ROWS = 1_000
_HASHED_ROWS = 4_096
_LARGEST, _SMALLEST = 1e150, 1e-150  # their squares, which are variances, are still ordinary numbers
_ROUNDING = 1e-12  # a column that varies by less, relative to its mean, does not vary


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each column: mean, population standard deviation, least and largest number, all (D,)."""

    mean: Array
    scale: Array  # zero where the column is constant up to rounding
    least: Array
    largest: Array


@dataclass(frozen=True, eq=False)
class Summary:
    """What one pass over rows found."""

    n_rows: int
    labels: tuple[str, ...]  # of the columns, for messages
    inputs: Moments
    target: Moments | None  # of a single column; weighted where the rows have weights
    distinct_rows: int  # counted up to a limit
    digest: str  # of shape, type and a thousand rows: tells whether a checkpoint belongs to these rows
    far: NDArray[np.bool_]  # (D,), columns in which a few numbers are so far from all others that they make its scale

    @property
    def target_is_constant(self) -> bool:
        """Does y never vary?"""
        return self.target is not None and bool(self.target.least[0] == self.target.largest[0])

    def range(self) -> tuple[Array, Array]:
        """Ends of each column's range (D,), a hundredth of it further out: a model that keeps them holds no data."""
        margin = 0.01 * (self.inputs.largest - self.inputs.least)
        return self.inputs.least - margin, self.inputs.largest + margin

    def target_range(self) -> tuple[float, float] | None:
        """Ends of the target's range, likewise; None without a target."""
        if self.target is None:
            return None
        least, largest = float(self.target.least[0]), float(self.target.largest[0])
        return least - 0.01 * (largest - least), largest + 0.01 * (largest - least)


def summarise(rows: Rows, distinct_limit: int = DISTINCT_LIMIT) -> Summary:
    """One pass over all rows; numbers that no model can use are refused by argument, row and column.

    Distinct rows are counted up to ``distinct_limit``, which they reach after as many rows where most are distinct.
    """
    found = rows.fold(partial(_summarise_block, Shape.of(rows), distinct_limit, rows.n_rows), BLOCK_ROWS)
    moments = found.inputs.result()
    mean, scale, far = without_far_numbers(found.digest.rows(), moments.mean, moments.scale)
    return Summary(
        rows.n_rows,
        rows.labels,
        replace(moments, mean=mean, scale=scale),
        None if found.target is None else found.target.result(),
        found.distinct.count,
        found.digest.text(rows.n_rows),
        far,
    )


def check_finite(rows: Rows) -> None:
    """Refuse rows that hold NaN or infinity; they are read once."""
    shape = Shape.of(rows)

    def look(here: slice, X: Numbers, y: Numbers | None, _: Array | None) -> int:
        check_block(shape, here, X, y)
        return 0

    rows.fold(look, BLOCK_ROWS)


@dataclass(frozen=True)
class Shape:
    """What blocks of some rows are compared with."""

    what: str  # the class of the rows, for messages
    n_columns: int
    labels: tuple[str, ...]

    @staticmethod
    def of(rows: Rows) -> Shape:
        """That of some rows."""
        return Shape(type(rows).__name__, rows.n_columns, rows.labels)


def check_block(shape: Shape, here: slice, X: Numbers, y: Numbers | None) -> None:
    """Refuse a block of rows, those at these positions, whose shape or numbers are not in order."""
    start, count = here.start, here.stop - here.start
    if X.shape != (count, shape.n_columns) or (y is not None and y.shape != (count,)):
        raise InvalidInputError(
            f"{shape.what}.take gave X {X.shape} and y {None if y is None else y.shape} for {count} rows "
            f"from {start} on; expected X {(count, shape.n_columns)} and y {(count,)} or None"
        )
    _check_finite(X, "X", start, shape.labels)
    if y is not None:
        _check_finite(y[:, None], "y", start, None)


def _check_finite(values: Numbers, argument: str, start: int, labels: tuple[str, ...] | None) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one number to look at; a sum of finite ones may overflow, hence the second look
            return
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        found = "NaN" if np.isnan(values[row, column]) else "infinity"
        where = "" if labels is None else f", column {labels[column]}"
        raise InvalidInputError(
            f"Input {argument} contains {found} in row {start + row} (counted from 0){where}; fill such values in, or "
            "leave these rows out"
        )


def column_moments(values: Array, columns: list[str], weights: Array | None = None) -> Moments:
    """Moments of columns (n, D) that are in memory, with weights (n,) where they are not all one."""
    return RunningMoments.of(values, tuple(columns), weights).result()


@dataclass(frozen=True, eq=False)
class _Running:
    """What a summary is made of, of some rows; ``+`` joins those of the rows that follow."""

    inputs: RunningMoments
    target: RunningMoments | None
    distinct: _DistinctRows
    digest: _Digest

    def __add__(self, other: _Running) -> _Running:
        target = None if self.target is None or other.target is None else self.target + other.target
        return _Running(self.inputs + other.inputs, target, self.distinct + other.distinct, self.digest + other.digest)


def _summarise_block(
    shape: Shape, limit: int, n_rows: int, here: slice, X: Numbers, y: Numbers | None, weights: Array | None
) -> _Running:
    check_block(shape, here, X, y)
    target = None if y is None else RunningMoments.of(y[:, None], ("the target y",), weights)
    return _Running(
        RunningMoments.of(X, tuple(f"column {label} of X" for label in shape.labels)),
        target,
        _DistinctRows.of(X, limit),
        _Digest.of(n_rows, here.start, X, y, weights),
    )


@dataclass(frozen=True, eq=False)
class RunningMoments:
    """Moments of the columns of blocks, merged as in Chan, Golub and LeVeque (1983), Updating formulae ..., eq. 1.5.

    With d = m_b - m_a:  m = m_a + d n_b / n,  S = S_a + S_b + d^2 n_a n_b / n, where S is the sum of centred squares.
    With weights the n are their sums.
    """

    columns: tuple[str, ...]
    n: float
    mean: Array
    squares: Array
    least: Array
    largest: Array

    @staticmethod
    def of(X: Numbers, columns: tuple[str, ...], weights: Array | None = None) -> RunningMoments:
        """Those of a block (n, D), with weights (n,) where they are not all one."""
        n = len(X) if weights is None else float(weights.sum())
        least, largest = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        _check_size(least, largest, columns)
        mean = (X.sum(axis=0, dtype=np.float64) if weights is None else weights @ X) / n
        centred = X - mean
        squares = np.square(centred, out=centred)
        squares = squares.sum(axis=0) if weights is None else weights @ squares
        return RunningMoments(columns, n, mean, squares, least, largest)

    def __add__(self, other: RunningMoments) -> RunningMoments:
        gap, n, total = other.mean - self.mean, other.n, self.n + other.n
        return RunningMoments(
            self.columns,
            total,
            self.mean + gap * (n / total),
            self.squares + other.squares + np.square(gap) * (self.n * n / total),
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
        )

    def result(self) -> Moments:
        """The moments of all blocks."""
        scale = np.sqrt(self.squares / (self.n or 1))
        scale = np.where(scale > _ROUNDING * np.abs(self.mean), scale, 0.0)
        spread = self.largest - self.least
        for j in np.flatnonzero((spread > 0) & (spread < _SMALLEST)):
            raise InvalidInputError(f"{self.columns[j]} varies too little to square ({spread[j]:.1e}); rescale it")
        return Moments(self.mean, scale, self.least, self.largest)


def _check_size(least: Array, largest: Array, columns: tuple[str, ...]) -> None:
    size = np.maximum(-least, largest)
    for j in np.flatnonzero(size > _LARGEST):
        raise InvalidInputError(f"{columns[j]} holds numbers too large to square ({size[j]:.1e}); rescale it")


@dataclass(frozen=True, eq=False)
class _DistinctRows:
    """Counts distinct rows up to a limit, by their keys."""

    keys: NDArray[np.uint64]
    limit: int

    @staticmethod
    def of(X: Numbers, limit: int) -> _DistinctRows:
        """Those of a block; no more of it are read than the limit needs."""
        found = _DistinctRows(np.empty(0, np.uint64), limit)
        for start in range(0, len(X), _HASHED_ROWS):
            if found.count == limit:
                break
            found += _DistinctRows(np.unique(row_keys([X[start : start + _HASHED_ROWS]], X.shape[1])), limit)
        return found

    def __add__(self, other: _DistinctRows) -> _DistinctRows:
        return self if self.count == self.limit else _DistinctRows(np.union1d(self.keys, other.keys), self.limit)

    @property
    def count(self) -> int:
        return min(len(self.keys), self.limit)


@dataclass(frozen=True, eq=False)
class _Digest:
    """Rows spread evenly over all, at most a thousand, and the layout of all."""

    layout: tuple[int, str]  # number of columns and type
    picked: tuple[tuple[Numbers, Numbers | None, Array | None], ...]  # inputs, targets, weights

    @staticmethod
    def of(n_rows: int, start: int, X: Numbers, y: Numbers | None, weights: Array | None) -> _Digest:
        """Those in a block that begins at row ``start`` of ``n_rows``."""
        spread = np.linspace(0, n_rows - 1, min(n_rows, _DIGEST_ROWS)).astype(np.int64)
        at = spread[slice(*np.searchsorted(spread, [start, start + len(X)]))] - start
        some = X[at], None if y is None else y[at], None if weights is None else weights[at]
        return _Digest((X.shape[1], str(X.dtype)), (some,))

    def __add__(self, other: _Digest) -> _Digest:
        return _Digest(self.layout, self.picked + other.picked)

    def rows(self) -> Array:
        """The rows themselves (n, D)."""
        return np.concatenate([X for X, _, _ in self.picked], dtype=np.float64)

    def text(self, n_rows: int) -> str:
        """A digest of layout and rows."""
        inputs, targets = hashlib.sha256(), hashlib.sha256()
        for X, _, _ in self.picked:
            inputs.update(X.tobytes())
        for each in (*(y for _, y, _ in self.picked), *(weights for _, _, weights in self.picked)):
            targets.update(b"" if each is None else each.tobytes())
        parts = repr((n_rows, *self.layout)).encode() + inputs.digest() + targets.digest()
        return hashlib.sha256(parts).hexdigest()
