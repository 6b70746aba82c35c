"""A mean of a sample and its t interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t

LEVEL = 0.95


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

    def is_within(self, margin: float) -> bool:
        """Does the whole interval lie between -margin and margin?"""
        return abs(self.mean) + self.half_width <= margin

    def text(self, digits: int = 3) -> str:
        """-0.056 ± 0.021."""
        return f"{self.mean:+.{digits}f} ± {self.half_width:.{digits}f}"


def sample_mean(values: Sequence[float], comparisons: int = 1) -> SampleMean:
    """Mean of a sample; its interval is one of ``comparisons``, which hold together (Bonferroni)."""
    if len(values) < 2:
        return SampleMean(mean(values), math.inf)
    quantile = float(t.ppf(1.0 - 0.5 * (1.0 - LEVEL) / comparisons, len(values) - 1))
    return SampleMean(mean(values), quantile * stdev(values) / math.sqrt(len(values)))
