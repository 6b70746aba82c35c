"""The claims of the paper's text, decided from the rows of the reproductions.

Every claim is a function from results to a ``Finding``; its rule is printed beside the verdict, with the numbers. What
random draws or splits decide is judged by ``paired`` or ``sample_means``: a difference within its noise, or fewer than
five runs, leave a claim undecided. Where a sentence has several readings, all of them are judged (``finding.combine``).
"""

from certgp_paper.claims import (
    bounds,
    burt,
    curves,
    deep,
    fewer_points,
    growing_rank,
    linear,
    predictive,
    promised_ranks,
    rates,
    row_cost,
    sizes,
)
from certgp_paper.claims.finding import (
    FAILS,
    FAILS_IN_PART,
    HOLDS,
    HOLDS_IN_PART,
    MIXED,
    NOT_RUN,
    NOT_TESTABLE,
    TOPICS,
    UNDECIDED,
    Claim,
    Finding,
)

CLAIMS: tuple[Claim, ...] = (
    *rates.CLAIMS,
    *bounds.CLAIMS,
    *predictive.CLAIMS,
    *promised_ranks.CLAIMS,
    *burt.CLAIMS,
    *linear.CLAIMS,
    *row_cost.CLAIMS,
    *curves.CLAIMS,
    *growing_rank.CLAIMS,
    *deep.CLAIMS,
    *sizes.CLAIMS,
    *fewer_points.CLAIMS,
    *bounds.OUR_CLAIMS,
)

__all__ = [
    "CLAIMS",
    "FAILS",
    "FAILS_IN_PART",
    "HOLDS",
    "HOLDS_IN_PART",
    "MIXED",
    "NOT_RUN",
    "NOT_TESTABLE",
    "TOPICS",
    "UNDECIDED",
    "Claim",
    "Finding",
]
