"""What a claim of the paper is, and what was found about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certgp_paper.experiments.results import Results

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold here", "undecided here", "not run yet"


@dataclass(frozen=True)
class Finding:
    """A verdict and the numbers that show it."""

    verdict: str
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, the rule by which our rows decide it, and the decision."""

    statement: str
    where: str
    experiment: str  # whose section of the page shows the numbers
    rule: str
    judge: Callable[[Results], Finding]


def not_run(name: str) -> Finding:
    """There are no rows to judge by."""
    return Finding(NOT_RUN, f"`certgp reproduce {name}`")


def finding(holds: bool, evidence: str) -> Finding:
    """A verdict."""
    return Finding(HOLDS if holds else FAILS, evidence)
