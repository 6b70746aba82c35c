"""What a claim of the paper is, and what was found about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from certgp_paper.experiments.results import Results

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold here", "undecided here", "not run yet"
MIXED = "depends on the variant"
_BRIEF = 125  # characters


@dataclass(frozen=True)
class Finding:
    """A verdict, the numbers that show it, how sure it is in a few words, and the verdict of each variant if several
    were judged.
    """

    verdict: str
    evidence: str
    short: str = ""
    variants: tuple[tuple[str, str], ...] = ()

    @property
    def brief(self) -> str:
        """How sure it is, or the beginning of the evidence."""
        text = self.short or self.evidence.split(";")[0]
        if text.count("(") > text.count(")"):
            text = text[: text.rindex("(")].rstrip()
        return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3].rsplit(' ', 1)[0]} .."


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


def combine(variants: Mapping[str, Finding], experiment: str) -> Finding:
    """One finding of several variants: their common verdict, or that it depends on the variant.

    Variants that were not run are named and decide nothing.
    """
    verdicts = dict.fromkeys(found.verdict for found in variants.values() if found.verdict != NOT_RUN)
    if not verdicts:
        return not_run(experiment)
    return Finding(
        next(iter(verdicts)) if len(verdicts) == 1 else MIXED,
        "; ".join(f"`{name}`: {found.evidence}" for name, found in variants.items()),
        "; ".join(f"{name} {found.brief}" for name, found in variants.items() if found.verdict != NOT_RUN),
        tuple((name, found.verdict) for name, found in variants.items()),
    )
