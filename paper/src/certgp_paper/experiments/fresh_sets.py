"""Point sets that decide alone what the first ones left open.

Raising the number of point sets until a verdict comes is no test. Where the first ten leave a claim open, twenty more
are drawn, a number fixed before the first of them was computed, and these alone are judged; see docs/decisions/0055.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

FRESH_SETS = range(10, 30)  # seeds

T = TypeVar("T")


def deciding_sets(found: Sequence[T], seed_of: Callable[[T], object]) -> list[T]:
    """The fresh ones where all of them are there, otherwise the first ones."""
    fresh = [each for each in found if seed_of(each) in FRESH_SETS]
    if {seed_of(each) for each in fresh} == set(FRESH_SETS):
        return fresh
    return [each for each in found if seed_of(each) not in FRESH_SETS]
