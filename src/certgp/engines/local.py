"""One machine: chunks in turn, each on all of torch's threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

from certgp.data import Chunk, RowSource
from certgp.engines.base import Summable
from certgp.errors import InvalidInputError

T = TypeVar("T", bound=Summable)
_CHUNK_NUMBERS = (
    2**20
)  # numbers per feature chunk (8 MiB in float64): large enough for BLAS, small enough for the cache


def default_chunk_rows(rank: int) -> int:
    """Rows per chunk such that a chunk of features has about a million numbers, between 1024 and 65536 rows."""
    return int(min(max(_CHUNK_NUMBERS // max(rank, 1), 1024), 65_536))


@dataclass(frozen=True)
class LocalEngine:
    """Sequential fold; ``chunk_rows`` overrides the size of a chunk. The result does not depend on it beyond
    rounding.
    """

    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        rows = self.chunk_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise InvalidInputError(f"chunk_rows must be a positive whole number or None, found {rows!r}")

    @property
    def in_process(self) -> bool:
        """Tasks run here, one after the other."""
        return True

    def fold(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        """sum over chunks of task(chunk)."""
        chunks = source.chunks(self.chunk_rows or default_chunk_rows(rank))
        return reduce(add, map(task, chunks))
