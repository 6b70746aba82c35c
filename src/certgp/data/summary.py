"""All that a fit must know of its rows beforehand, from one pass over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import Numbers
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
    inputs = _RunningMoments([f"column {label} of X" for label in rows.labels])
    target = _RunningMoments(["the target y"])
    distinct, digest = _DistinctRows(distinct_limit), _Digest(rows.n_rows)
    for start, X, y in checked_chunks(rows):
        weights = rows.weights(slice(start, start + len(X)))
        inputs.add(X)
        if y is not None:
            target.add(y[:, None], weights)
        distinct.add(X)
        digest.add(start, X, y, weights)
    of_target = target.result() if target.n else None
    found = inputs.result()
    mean, scale, far = without_far_numbers(digest.rows(), found.mean, found.scale)
    of_inputs = replace(found, mean=mean, scale=scale)
    return Summary(rows.n_rows, rows.labels, of_inputs, of_target, distinct.count, digest.text(), far)


def check_finite(rows: Rows) -> None:
    """Refuse rows that hold NaN or infinity; they are read once."""
    for _ in checked_chunks(rows):
        pass


def checked_chunks(rows: Rows) -> Iterator[tuple[int, Numbers, Numbers | None]]:
    """Number of the first row, X (n, D) and y (n,) of chunks whose shape and numbers are in order."""
    start = 0
    for X, y in rows.chunks(BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows.n_rows - start)
        if X.shape != (count, rows.n_columns) or (y is not None and y.shape != (count,)):
            raise InvalidInputError(
                f"{type(rows).__name__}.take gave X {X.shape} and y {None if y is None else y.shape} for {count} rows "
                f"from {start} on; expected X {(count, rows.n_columns)} and y {(count,)} or None"
            )
        _check_finite(X, "X", start, rows.labels)
        if y is not None:
            _check_finite(y[:, None], "y", start, None)
        yield start, X, y
        start += count


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
    running = _RunningMoments(columns)
    running.add(values, weights)
    return running.result()


class _RunningMoments:
    """Moments of the columns of blocks, merged as in Chan, Golub and LeVeque (1983), Updating formulae ..., eq. 1.5.

    With d = m_b - m_a:  m = m_a + d n_b / n,  S = S_a + S_b + d^2 n_a n_b / n, where S is the sum of centred squares.
    With weights the n are their sums.
    """

    def __init__(self, columns: list[str]) -> None:
        self._columns = columns
        self.n: float = 0
        self._mean = self._squares = np.zeros(len(columns))
        self._least, self._largest = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)

    def add(self, X: Numbers, weights: Array | None = None) -> None:
        """Take in a block (n, D), with weights (n,) where they are not all one."""
        n = len(X) if weights is None else float(weights.sum())
        self._least = np.minimum(self._least, X.min(axis=0))
        self._largest = np.maximum(self._largest, X.max(axis=0))
        self._check_size()
        mean = (X.sum(axis=0, dtype=np.float64) if weights is None else weights @ X) / n
        centred = X - mean
        squares = np.square(centred, out=centred)
        squares = squares.sum(axis=0) if weights is None else weights @ squares
        if self.n == 0:
            self._mean, self._squares = mean, squares
        else:
            gap, total = mean - self._mean, self.n + n
            self._mean = self._mean + gap * (n / total)
            self._squares = self._squares + squares + np.square(gap) * (self.n * n / total)
        self.n += n

    def result(self) -> Moments:
        """The moments of all blocks."""
        scale = np.sqrt(self._squares / (self.n or 1))
        scale = np.where(scale > _ROUNDING * np.abs(self._mean), scale, 0.0)
        spread = self._largest - self._least
        for j in np.flatnonzero((spread > 0) & (spread < _SMALLEST)):
            raise InvalidInputError(f"{self._columns[j]} varies too little to square ({spread[j]:.1e}); rescale it")
        return Moments(self._mean, scale, self._least, self._largest)

    def _check_size(self) -> None:
        size = np.maximum(-self._least, self._largest)
        for j in np.flatnonzero(size > _LARGEST):
            raise InvalidInputError(f"{self._columns[j]} holds numbers too large to square ({size[j]:.1e}); rescale it")


class _DistinctRows:
    """Counts distinct rows up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit, self._seen = limit, set[bytes]()

    @property
    def count(self) -> int:
        return min(len(self._seen), self._limit)

    def add(self, X: Numbers) -> None:
        for start in range(0, len(X), _HASHED_ROWS):
            if len(self._seen) >= self._limit:
                return
            block = np.ascontiguousarray(X[start : start + _HASHED_ROWS]) + 0.0  # -0.0 equals 0.0
            self._seen.update(block.view(f"V{block.itemsize * block.shape[1]}").ravel().tolist())


class _Digest:
    """A digest of shape, type and rows spread evenly over all."""

    def __init__(self, n_rows: int) -> None:
        self._spread = np.linspace(0, n_rows - 1, min(n_rows, _DIGEST_ROWS)).astype(np.int64)
        self._inputs, self._targets = hashlib.sha256(), hashlib.sha256()
        self._layout: tuple[object, ...] = (n_rows,)
        self._picked: list[Array] = []

    def add(self, start: int, X: Numbers, y: Numbers | None, weights: Array | None) -> None:
        here = self._spread[slice(*np.searchsorted(self._spread, [start, start + len(X)]))] - start
        self._layout = (self._layout[0], X.shape[1], str(X.dtype))
        picked = X[here]
        self._inputs.update(picked.tobytes())
        self._picked.append(picked.astype(np.float64))
        if y is not None:
            self._targets.update(y[here].tobytes())
        if weights is not None:
            self._targets.update(weights[here].tobytes())

    def rows(self) -> Array:
        """The rows themselves, at most a thousand (n, D)."""
        return np.concatenate(self._picked)

    def text(self) -> str:
        parts = repr(self._layout).encode() + self._inputs.digest() + self._targets.digest()
        return hashlib.sha256(parts).hexdigest()
