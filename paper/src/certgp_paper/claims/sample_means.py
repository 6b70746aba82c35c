"""Means over point sets, judged by t intervals: two-sided 95 %, all of one claim together (Bonferroni).

Text shows the 95 % interval of each mean for itself, which is narrower where a claim has several.
"""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED
from certgp_paper.experiments.sample_means import sample_mean

FEWEST = 5  # point sets, below which nothing is judged
RULE = (
    "95 % t intervals over point sets, all comparisons of the claim together (Bonferroni); a limit inside one leaves "
    "the claim undecided"
)


def all_negative(samples: Sequence[Sequence[float]], readings: int = 1) -> str:
    """Verdict on "every one of these has a mean below zero"; a claim with several readings makes more comparisons."""
    if any(len(values) < FEWEST for values in samples):
        return UNDECIDED
    means = [sample_mean(values, readings * len(samples)) for values in samples]
    if all(each.is_negative for each in means):
        return HOLDS
    return FAILS if any(each.is_positive for each in means) else UNDECIDED
