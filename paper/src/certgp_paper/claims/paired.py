"""Differences of two methods on what they share, judged against their own noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED

RULE = "by more than one standard error of the paired difference (otherwise undecided)"


@dataclass(frozen=True)
class Difference:
    """Mean of first minus second, and its standard error, which a single pair does not have."""

    mean: float
    standard_error: float | None

    @property
    def is_lower(self) -> bool:
        """Is the first lower by more than the noise?"""
        return self.standard_error is not None and self.mean < -self.standard_error

    @property
    def is_higher(self) -> bool:
        """Is the first higher by more than the noise?"""
        return self.standard_error is not None and self.mean > self.standard_error

    def text(self, digits: int) -> str:
        """-0.024 ± 0.010."""
        noise = "?" if self.standard_error is None else f"{self.standard_error:.{digits}f}"
        return f"{self.mean:+.{digits}f} ± {noise}"


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Of figures that belong together one by one: what is common to a pair, such as a hard split, cancels."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    return Difference(mean(gaps), stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None)


def all_lower(differences: Sequence[Difference]) -> str:
    """Verdict on "the first is lower in every pair"."""
    if all(difference.is_lower for difference in differences):
        return HOLDS
    return FAILS if any(difference.is_higher for difference in differences) else UNDECIDED
