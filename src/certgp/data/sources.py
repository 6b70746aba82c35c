"""Rows in bounded chunks, as tensors ready for the feature maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data.rows import Rows
from certgp.data.standardise import Standardiser
from certgp.errors import InvalidInputError

_LOOK_ROWS = 4_096
KEPT_BYTES = 1 << 25  # standardised copies of at most this size are made once instead of at every pass


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows: X (n, D), y (n,)."""

    X: Tensor
    y: Tensor


class RowSource(Protocol):
    """A data set that can be read again and again in chunks."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of input columns."""

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time."""

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """At most ``rows`` rows drawn without replacement."""

    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        """The rows at these positions."""


class RowsByPosition(ABC):
    """A row source that can take rows at any positions: all else follows."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of input columns."""

    @abstractmethod
    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        """The rows at these positions."""

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.take(slice(start, start + rows))

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """At most ``rows`` rows drawn without replacement, in float64 and in their original order."""
        chunk = self.take(np.sort(rng.permutation(self.n_rows)[:rows]))
        return Chunk(chunk.X.double(), chunk.y.double())


class ChunkSource(RowsByPosition):
    """Rows that are already tensors in memory."""

    def __init__(self, rows: Chunk) -> None:
        self._rows = rows

    @property
    def n_rows(self) -> int:
        return int(self._rows.X.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self._rows.X.shape[1])

    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        return _picked(self._rows, rows)


class StandardisedRows(RowsByPosition):
    """Rows in the user's units, standardised as they are read."""

    def __init__(self, rows: Rows, standardiser: Standardiser, dtype: torch.dtype = torch.float64) -> None:
        self._rows, self._standardiser, self._dtype = rows, standardiser, dtype
        self._kept = self._convert(slice(None)) if 8 * rows.n_rows * rows.n_columns <= KEPT_BYTES else None

    @property
    def n_rows(self) -> int:
        return self._rows.n_rows

    @property
    def n_columns(self) -> int:
        return self._rows.n_columns

    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        return self._convert(rows) if self._kept is None else _picked(self._kept, rows)

    def _convert(self, positions: slice | NDArray[np.int64]) -> Chunk:
        X, y = self._rows.take(positions)
        if y is None:
            raise InvalidInputError("the rows have no target to learn from; give y, or rows that hold one")
        inputs = torch.from_numpy(self._standardiser.inputs(X))
        return Chunk(inputs.to(self._dtype), torch.from_numpy(self._standardiser.target(y)).to(self._dtype))


class SubsetSource(RowsByPosition):
    """Some rows of another source, by their positions in it."""

    def __init__(self, source: RowSource, positions: NDArray[np.int64]) -> None:
        self._source, self._positions = source, positions

    @property
    def n_rows(self) -> int:
        return len(self._positions)

    @property
    def n_columns(self) -> int:
        return self._source.n_columns

    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        """The rows at these positions of the subset."""
        return self._source.take(self._positions[rows])


class TypedSource(RowsByPosition):
    """The rows of another source in another floating-point type."""

    def __init__(self, source: RowSource, dtype: torch.dtype) -> None:
        self._source, self._dtype = source, dtype

    @property
    def n_rows(self) -> int:
        return self._source.n_rows

    @property
    def n_columns(self) -> int:
        return self._source.n_columns

    def take(self, rows: slice | NDArray[np.int64]) -> Chunk:
        chunk = self._source.take(rows)
        return Chunk(chunk.X.to(self._dtype), chunk.y.to(self._dtype))


def target_is_constant(source: RowSource) -> bool:
    """Does y never vary? Reads no further than to the first chunk in which it does."""
    first = source.take(slice(0, 1)).y
    return all(bool((chunk.y == first).all()) for chunk in source.chunks(_LOOK_ROWS))


def _picked(rows: Chunk, positions: slice | NDArray[np.int64]) -> Chunk:
    pick = positions if isinstance(positions, slice) else torch.from_numpy(positions)
    return Chunk(rows.X[pick], rows.y[pick])
