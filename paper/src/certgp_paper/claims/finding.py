"""What a claim of the paper is, and what was found about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from certgp_paper.experiments.results import Results

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold here", "undecided here", "not run yet"
NOT_TESTABLE = "not testable here"
MIXED = "depends"  # holds in one reading and fails in another
HOLDS_IN_PART, FAILS_IN_PART = "holds in part", "fails in part"  # and is undecided otherwise
VARIANT = "variant"  # of training: certgp or paper
_BRIEF = 170  # characters

RATES, LINEAR, CURVE, DEEP = "Ranks and divergences", "Linear models", "A curve from 25 points", "Deep models"
OUR_CERTIFICATES = "Certificates of this library"  # not claims of the paper
TOPICS = (RATES, LINEAR, CURVE, DEEP, OUR_CERTIFICATES)


@dataclass(frozen=True)
class Finding:
    """A verdict, the numbers that show it, how sure it is in a few words, and the verdict of each reading if several
    were judged: variants of training, of the variance, or of what a sentence means.
    """

    verdict: str
    evidence: str  # parts, divided by "; "
    short: str = ""
    readings: tuple[tuple[str, str], ...] = ()
    depends_on: str = ""  # what tells the readings apart

    @property
    def brief(self) -> str:
        """How sure it is, or the beginning of the evidence."""
        text = self.short or self.evidence.split("; ")[0]
        if text.count("(") > text.count(")"):
            text = text[: text.rindex("(")].rstrip()
        return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 3].rsplit(' ', 1)[0]} .."

    @property
    def in_words(self) -> str:
        """The verdict, or those of the readings where they differ."""
        if self.verdict not in (MIXED, HOLDS_IN_PART, FAILS_IN_PART):
            return self.verdict
        return ", ".join(f"{name} {verdict}" for name, verdict in self.readings)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, the rule by which our rows decide it, and the decision."""

    topic: str  # one of TOPICS
    statement: str
    where: str
    experiment: str  # whose section of the page shows the numbers
    rule: str
    judge: Callable[[Results], Finding]
    our_limit: str = ""  # what the rule compares with that the paper does not say, and whence it is

    @property
    def is_of_paper(self) -> bool:
        """Is it a claim of the paper's text? What this library promises beside it is not counted with those."""
        return self.topic != OUR_CERTIFICATES


def not_run(name: str) -> Finding:
    """There are no rows to judge by."""
    return Finding(NOT_RUN, f"`certgp reproduce {name}`")


def labelled(label: str, evidence: str) -> str:
    """The same evidence with the label before each of its parts."""
    return "; ".join(f"{label}: {part}" for part in evidence.split("; "))


def combine(readings: Mapping[str, Finding], experiment: str, depends_on: str = VARIANT) -> Finding:
    """One finding of several readings: their common verdict, or how they differ.

    Readings that were not run are named and decide nothing.
    """
    known = {name: found for name, found in readings.items() if found.verdict != NOT_RUN}
    if not known:
        return not_run(experiment)
    return Finding(
        _common({found.verdict for found in known.values()}),
        "; ".join(labelled(_label(name, depends_on), found.evidence) for name, found in readings.items()),
        "; ".join(f"{name}: {found.brief}" for name, found in known.items()),
        tuple((name, found.verdict) for name, found in readings.items()),
        depends_on,
    )


def _label(name: str, depends_on: str) -> str:
    return f"`{name}`" if depends_on == VARIANT else name


def _common(verdicts: set[str]) -> str:
    if len(verdicts) == 1:
        return next(iter(verdicts))
    if {HOLDS, FAILS} <= verdicts:
        return MIXED
    return HOLDS_IN_PART if HOLDS in verdicts else FAILS_IN_PART
