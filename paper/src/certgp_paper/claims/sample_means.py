"""Means over point sets, judged by t intervals: two-sided 95 %, corrected for several comparisons in one claim."""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED
from certgp_paper.experiments.sample_means import sample_mean

FEWEST = 5  # point sets, below which nothing is judged
RULE = (
    "95 % t interval over point sets, corrected for several comparisons; a limit inside it leaves the claim undecided"
)


def all_negative(samples: Sequence[Sequence[float]]) -> str:
    """Verdict on "every one of these has a mean below zero"."""
    if any(len(values) < FEWEST for values in samples):
        return UNDECIDED
    means = [sample_mean(values, len(samples)) for values in samples]
    if all(each.is_negative for each in means):
        return HOLDS
    return FAILS if any(each.is_positive for each in means) else UNDECIDED
