"""What an engine offers: one fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from certgp.data import Chunk, RowSource


class Summable(Protocol):
    """A commutative monoid: results of disjoint chunks merge by ``+``."""

    def __add__(self, other: Self) -> Self:
        """Merge."""


T = TypeVar("T", bound=Summable)


class Engine(Protocol):
    """Runs a pure task on every chunk of a source and merges the results."""

    @property
    def in_process(self) -> bool:
        """Do tasks run in this process, some of them at the same time, so that they may leave tensors behind?"""

    def fold(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        """sum over chunks of task(chunk); ``rank`` tells how wide a row's result is, so that a chunk stays bounded."""
