"""Means over point sets, judged by t intervals: two-sided 95 %, corrected for several comparisons in one claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED

LEVEL = 0.95
FEWEST = 5  # point sets, below which nothing is judged
RULE = (
    "95 % t interval over point sets, corrected for several comparisons; a limit inside it leaves the claim undecided"
)


@dataclass(frozen=True)
class SampleMean:
    """A mean and half the width of its t interval."""

    mean: float
    half_width: float

    @property
    def is_negative(self) -> bool:
        """Does the whole interval lie below zero?"""
        return self.mean + self.half_width < 0.0

    @property
    def is_positive(self) -> bool:
        """Does the whole interval lie above zero?"""
        return self.mean - self.half_width > 0.0

    def text(self, digits: int = 3) -> str:
        """-0.056 ± 0.021."""
        return f"{self.mean:+.{digits}f} ± {self.half_width:.{digits}f}"


def sample_mean(values: Sequence[float], comparisons: int = 1) -> SampleMean:
    """Mean of a sample; its interval is one of ``comparisons``, which hold together (Bonferroni)."""
    if len(values) < 2:
        return SampleMean(mean(values), math.inf)
    quantile = float(t.ppf(1.0 - 0.5 * (1.0 - LEVEL) / comparisons, len(values) - 1))
    return SampleMean(mean(values), quantile * stdev(values) / math.sqrt(len(values)))


def all_negative(samples: Sequence[Sequence[float]]) -> str:
    """Verdict on "every one of these has a mean below zero"."""
    if any(len(values) < FEWEST for values in samples):
        return UNDECIDED
    means = [sample_mean(values, len(samples)) for values in samples]
    if all(each.is_negative for each in means):
        return HOLDS
    return FAILS if any(each.is_positive for each in means) else UNDECIDED
