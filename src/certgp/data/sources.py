"""Standardised rows in bounded chunks, as tensors ready for the feature maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data.remote import RemoteRows
from certgp.data.rows import Positions, Rows
from certgp.data.standardise import Standardiser
from certgp.data.store import StoredRows
from certgp.errors import InvalidInputError

KEPT_BYTES = 1 << 25  # standardised copies of at most this size are made once instead of at every pass
_LOOK_ROWS = 4_096
_LISTED_ROWS = 1_000_000  # positions of more are not listed to draw some of them


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows: X (n, D), y (n,), and their weights (n,) in float64, the noise variance of row i being s2 / weight_i.

    No weights are all one. Of several outputs y is (n, q), NaN where one is missing.
    """

    X: Tensor
    y: Tensor
    weight: Tensor | None = None

    def pick(self, rows: slice | Tensor) -> Chunk:
        """Some of these rows."""
        return Chunk(self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows])

    def to(self, dtype: torch.dtype) -> Chunk:
        """In another floating-point type, but for the weights."""
        return Chunk(self.X.to(dtype), self.y.to(dtype), self.weight)

    def with_inputs(self, X: Tensor) -> Chunk:
        """Other inputs of the same rows."""
        return Chunk(X, self.y, self.weight)

    def outputs(self) -> list[Chunk]:
        """One for each output, with the rows at which it was observed."""
        if self.y.ndim == 1:
            return [self]
        rows = [torch.nonzero(~y.isnan())[:, 0] for y in self.y.mT]
        return [replace(self.pick(some), y=self.y[some, j]) for j, some in enumerate(rows)]

    def weights(self) -> Tensor:
        """The weights (n,), also where all are one."""
        return torch.ones(len(self.y), dtype=torch.float64) if self.weight is None else self.weight

    def noise(self, noise_variance: float) -> Tensor | float:
        """Noise variances of the rows: s2 / weight (n,), or s2 where all weights are one."""
        return noise_variance if self.weight is None else noise_variance / self.weight

    @staticmethod
    def join(chunks: Sequence[Chunk]) -> Chunk:
        """The rows of several chunks."""
        weight = None
        if any(chunk.weight is not None for chunk in chunks):
            weight = torch.cat([chunk.weights() for chunk in chunks])
        return Chunk(torch.cat([chunk.X for chunk in chunks]), torch.cat([chunk.y for chunk in chunks]), weight)


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Rows on other machines, and what makes a source of one of their parts there."""

    rows: RemoteRows
    make: Callable[[StoredRows], RowSource]


class RowSource(ABC):
    """A data set that can be read again and again in chunks; all follows from taking rows at any positions."""

    n_rows: int
    n_columns: int  # of the inputs
    stands_for: int | None = None  # of a random subset, how many rows it was drawn from

    @property
    def elsewhere(self) -> Elsewhere | None:
        """Where the rows are; None where they are in this process."""
        return None

    @abstractmethod
    def take(self, positions: Positions) -> Chunk:
        """The rows at these positions."""

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.take(slice(start, start + rows))

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """At most ``rows`` rows drawn without replacement, in float64 and in their original order."""
        return self.take(np.sort(draw_positions(self.n_rows, rows, rng))).to(torch.float64)

    def subset(self, positions: NDArray[np.int64]) -> RowSource:
        """The rows at these positions; nothing is copied."""
        return SubsetSource(self, positions)

    def copied(self, positions: NDArray[np.int64], dtype: torch.dtype) -> RowSource:
        """A copy of some rows where they are, for many passes."""
        return ChunkSource(self.take(positions).to(dtype))


class ChunkSource(RowSource):
    """Rows that are already tensors in memory."""

    def __init__(self, rows: Chunk) -> None:
        self._rows = rows
        self.n_rows, self.n_columns = rows.X.shape

    def take(self, positions: Positions) -> Chunk:
        return self._rows.pick(_index(positions))


class StandardisedRows(RowSource):
    """Rows in the user's units, standardised as they are read; where they are few, once for all."""

    def __init__(
        self, rows: Rows, standardiser: Standardiser, dtype: torch.dtype = torch.float64, keep: bool = True
    ) -> None:
        """``keep=False`` standardises at every pass, however few the rows are."""
        self._rows, self._standardiser, self._dtype = rows, standardiser, dtype
        self.n_rows, self.n_columns = rows.n_rows, rows.n_columns
        few = keep and self.elsewhere is None and 8 * rows.n_rows * rows.n_columns <= KEPT_BYTES
        self._kept = ChunkSource(self._standardise_all()) if few else None

    @property
    def elsewhere(self) -> Elsewhere | None:
        if not isinstance(self._rows, RemoteRows):
            return None
        make = partial(StandardisedRows, standardiser=self._standardiser, dtype=self._dtype, keep=False)
        return Elsewhere(self._rows, make)

    def subset(self, positions: NDArray[np.int64]) -> RowSource:
        if self.elsewhere is None:
            return SubsetSource(self, positions)
        return StandardisedRows(self._rows.pick(positions), self._standardiser, self._dtype)

    def copied(self, positions: NDArray[np.int64], dtype: torch.dtype) -> RowSource:
        if self.elsewhere is None:
            return ChunkSource(self.take(positions).to(dtype))
        return StandardisedRows(self._rows.pick(positions), self._standardiser, dtype)

    def take(self, positions: Positions) -> Chunk:
        return self._standardised(positions) if self._kept is None else self._kept.take(positions)

    def _standardise_all(self) -> Chunk:
        """All rows, chunk by chunk, so that what they are made of is never in memory as a whole."""
        kept = Chunk(
            torch.empty((self.n_rows, self.n_columns), dtype=self._dtype), torch.empty(self.n_rows, dtype=self._dtype)
        )
        weights = []
        for start in range(0, self.n_rows, _LOOK_ROWS):
            part = slice(start, min(start + _LOOK_ROWS, self.n_rows))
            chunk = self._standardised(part)
            kept.X[part], kept.y[part] = chunk.X, chunk.y
            if chunk.weight is not None:
                weights.append(chunk.weight)
        return replace(kept, weight=torch.cat(weights)) if weights else kept

    def _standardised(self, positions: Positions) -> Chunk:
        X, y = self._rows.take(positions)
        if y is None:
            raise InvalidInputError("the rows have no target to learn from; give y, or rows that hold one")
        inputs, target = self._standardiser.inputs(X), self._standardiser.target(y)
        weights = self._rows.weights(positions)
        weight = None if weights is None else torch.from_numpy(weights)
        return Chunk(torch.from_numpy(inputs), torch.from_numpy(target), weight).to(self._dtype)


class SubsetSource(RowSource):
    """Some rows of another source, by their positions in it."""

    def __init__(self, source: RowSource, positions: NDArray[np.int64]) -> None:
        self._source, self._positions = source, positions
        self.n_rows, self.n_columns = len(positions), source.n_columns

    def take(self, positions: Positions) -> Chunk:
        return self._source.take(self._positions[positions])


class TypedSource(RowSource):
    """The rows of another source in another floating-point type."""

    def __init__(self, source: RowSource, dtype: torch.dtype) -> None:
        self._source, self._dtype = source, dtype
        self.n_rows, self.n_columns = source.n_rows, source.n_columns

    def take(self, positions: Positions) -> Chunk:
        return self._source.take(positions).to(self._dtype)


class ReweightedSource(RowSource):
    """The rows of another source with their weights multiplied by factors (N,)."""

    def __init__(self, source: RowSource, factors: Tensor) -> None:
        self._source, self._factors = source, factors
        self.n_rows, self.n_columns = source.n_rows, source.n_columns

    def take(self, positions: Positions) -> Chunk:
        chunk, factors = self._source.take(positions), self._factors[_index(positions)]
        return Chunk(chunk.X, chunk.y, factors if chunk.weight is None else chunk.weight * factors)


def draw_positions(n_rows: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """At most ``count`` of ``n_rows`` positions in random order, without replacement; of very many rows without a list
    of them all.
    """
    if n_rows <= _LISTED_ROWS or count >= n_rows:
        return rng.permutation(n_rows)[:count]
    return rng.choice(n_rows, count, replace=False)


def target_is_constant(source: RowSource) -> bool:
    """Does y never vary? Reads no further than to the first chunk in which it does."""
    first = source.take(slice(0, 1)).y
    return all(bool((chunk.y == first).all()) for chunk in source.chunks(_LOOK_ROWS))


def _index(positions: Positions) -> slice | Tensor:
    return positions if isinstance(positions, slice) else torch.from_numpy(positions)
