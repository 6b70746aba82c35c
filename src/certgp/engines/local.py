"""One machine: chunks in turn, each on all of torch's threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

from certgp.data import Chunk, RowSource
from certgp.engines.base import Summable
from certgp.errors import InvalidInputError

T = TypeVar("T", bound=Summable)
Item = TypeVar("Item")
_CHUNK_NUMBERS = 2**20  # of a chunk of features (8 MiB in float64), where that is not too few rows
_CHUNK_ROWS = 8192  # below this, the cost of starting small operations shows (measured: docs/benchmarks.md) ...
_MOST_NUMBERS = 2**22  # ... but a chunk stays below 32 MiB, above which allocators return memory to the system


def default_chunk_rows(rank: int) -> int:
    """Rows per chunk of features (rows, rank): between 1024 and 65536, chosen by measurement."""
    rows = max(_CHUNK_NUMBERS // max(rank, 1), min(_CHUNK_ROWS, _MOST_NUMBERS // max(rank, 1)))
    return int(min(max(rows, 1024), 65_536))


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
        return sum_over(task, source.chunks(self.chunk_rows or default_chunk_rows(rank)))


def sum_over(task: Callable[[Item], T], items: Iterable[Item]) -> T:
    """sum over items of task(item), in their order."""
    return reduce(add, map(task, items))
