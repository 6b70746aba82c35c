"""Rows in bounded chunks, as tensors ready for the feature maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data.standardise import Standardiser

CACHE_BYTES = 1 << 30  # standardised copies below this size are made once instead of at every pass


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


class ChunkSource:
    """Rows that are already tensors in memory."""

    def __init__(self, rows: Chunk) -> None:
        self._rows = rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._rows.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of input columns."""
        return int(self._rows.X.shape[1])

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n_rows, rows):
            yield Chunk(self._rows.X[start : start + rows], self._rows.y[start : start + rows])

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """At most ``rows`` rows drawn without replacement, in float64 and in their original order."""
        pick = torch.from_numpy(np.sort(rng.permutation(self.n_rows)[:rows]))
        return Chunk(self._rows.X[pick].double(), self._rows.y[pick].double())


class ArraySource:
    """Standardised chunks of arrays or memory maps."""

    def __init__(
        self,
        X: NDArray[np.floating],
        y: NDArray[np.floating],
        standardiser: Standardiser,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self._X, self._y = X, y
        self._standardiser = standardiser
        self._dtype = dtype
        self._cached = self._convert(slice(None)) if 8 * X.size <= CACHE_BYTES else None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of input columns."""
        return int(self._X.shape[1])

    @property
    def target_is_constant(self) -> bool:
        """Does y never vary?"""
        return bool((self._y == self._y[0]).all())

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self._take(slice(start, start + rows))

    def sample(self, rows: int, rng: np.random.Generator) -> Chunk:
        """At most ``rows`` rows drawn without replacement, in float64 and in their original order."""
        pick = np.sort(rng.permutation(self.n_rows)[:rows])
        chunk = self._convert(pick)
        return Chunk(chunk.X.double(), chunk.y.double())

    def _take(self, rows: slice) -> Chunk:
        if self._cached is None:
            return self._convert(rows)
        return Chunk(self._cached.X[rows], self._cached.y[rows])

    def _convert(self, rows: slice | NDArray[np.int64]) -> Chunk:
        X = torch.from_numpy(self._standardiser.inputs(np.asarray(self._X[rows])))
        y = torch.from_numpy(self._standardiser.target(np.asarray(self._y[rows])))
        return Chunk(X.to(self._dtype), y.to(self._dtype))
