"""Claims with their verdicts: a table for each topic on the first page, and a page with the numbers and rules."""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.claims import (
    CLAIMS,
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
from certgp_paper.experiments.results import Results
from certgp_paper.page.markdown import markdown_table, slug
from certgp_paper.page.sections import SECTIONS

_MARKS = {
    HOLDS: "✓ holds",
    FAILS: "✗ does not hold",
    UNDECIDED: "? undecided",
    NOT_TESTABLE: "not testable here",
    NOT_RUN: "not run",
}
_COUNTED = {
    HOLDS: "hold",
    FAILS: "do not hold",
    UNDECIDED: "undecided",
    HOLDS_IN_PART: "hold in one reading, undecided in another",
    FAILS_IN_PART: "do not hold in one reading, undecided in another",
    MIXED: "hold in one reading, do not in another",
    NOT_TESTABLE: "not testable here",
    NOT_RUN: "not run",
}
_OURS = "(our limit)"
_SIGNS = f"""
✓ holds, ✗ does not, ? undecided: these data decide neither way, or there are fewer than five runs. A difference is
*clear* where noise does not explain it, at the 5 % level for all comparisons of the claim together; where it *leans*,
only its sign is known. "±" is half of a 95 % interval of the mean, everywhere in the claims. {_OURS}: the paper gives
no number for a word such as "similar", so we chose one, mostly with the figures in view.
`certgp` is our training, `paper` the paper's; where variants or readings of a sentence differ, each has its sign. Links
lead to numbers and rules."""
_HOW = """"±" is half of the 95 % interval of a mean, each for itself (t quantiles; over splits, which share rows, with
the standard error of Nadeau and Bengio).

A claim **holds** where every comparison it makes is clear, and **does not hold** where one is clear the other way,
at the 5 % level for all its comparisons, variants and readings together. Otherwise, and with fewer than five splits
or point sets, it is **undecided**. Several comparisons are corrected for by Holm's method over splits (tables of
real data), of which each of two variants has half of the 5 % (Bonferroni), and by Bonferroni's over point sets
(figure 1, the curve) and over parts of the rows. Comparisons with too few runs are not corrected for, since they can
decide nothing; a claim about all of them stays undecided. So a mean whose own
interval excludes the limit may still be undecided. Claims about figure 2 and about bounds have no test: one
exception refutes them. Bounds that hold with probability .95, or .9 of predictions, are refuted where exceptions are
more than chance allows. Where a sentence has several readings (our training or the paper's, which variance, what r
counts), every one is judged, and a verdict that is not the same for all names each. Counts of comparisons ("4 of 28
clear, 8 lean so, 2 lean against, 14 with too few runs") are disjoint: "clear" ones count for the claim, those that
"lean" have the sign alone."""


def claims_table(results: Results) -> str:
    """All claims and verdicts, a table for each topic."""
    judged = _judged(results)
    head = f"{_count(judged)}\n{_SIGNS}"
    return "\n\n".join([head, *(text for topic in TOPICS if (text := _table(topic, judged)))])


def _count(judged: Sequence[tuple[Claim, Finding]]) -> str:
    """What this library promises beside the paper is not counted."""
    verdicts = [found.verdict for claim, found in judged if claim.is_of_paper]
    told = "; ".join(f"{text}: {verdicts.count(mark)}" for mark, text in _COUNTED.items() if mark in verdicts)
    ours = sum(bool(claim.our_limit) for claim, found in judged if claim.is_of_paper and found.verdict == HOLDS)
    limits = f" Of those that hold, {ours} rest on a limit of ours." if ours else ""
    return f"{len(verdicts)} claims of the paper's text. {_capitalised(told)}.{limits}"


def _table(topic: str, judged: Sequence[tuple[Claim, Finding]]) -> str:
    rows = [
        (
            f"{_short_verdict(found)} {_OURS if claim.our_limit else ''}".strip(),
            f"[{claim.statement}](reproduction/claims.md#{slug(claim.statement)})",
            _how_sure(found),
        )
        for claim, found in judged
        if claim.topic == topic
    ]
    if not rows:
        return ""
    others = [claim for claim, _ in judged if claim.topic == topic and not claim.is_of_paper]
    beside = " (not claims of the paper, and not counted)" if others else ""
    return f"**{topic}**{beside}\n\n{markdown_table(('here', 'claim', 'how sure'), rows)}"


def claims_page(results: Results) -> str:
    """Each claim with its numbers and its rule."""
    headings = {section.name: (section.heading, section.anchor) for section in SECTIONS}
    parts = ["# Claims of the paper, one by one", "[Back to the overview](../reproduction.md)", _HOW]
    for claim, found in _judged(results):
        heading, anchor = headings[claim.experiment]
        here = f" *Here:* [{heading}](../reproduction.md{anchor}), [all figures]({claim.experiment}.md)."
        limit = f" *Limit of ours:* {claim.our_limit}." if claim.our_limit else ""
        parts.append(
            "\n\n".join(
                [
                    f"## {claim.statement}",
                    f"**{_verdict(found)}**",
                    _evidence(found),
                    f"*Rule:* {claim.rule}.{limit}",
                    f"*In the paper:* {claim.where}.{here}",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def _judged(results: Results) -> list[tuple[Claim, Finding]]:
    return [(claim, claim.judge(results)) for claim in CLAIMS]


def _verdict(found: Finding) -> str:
    """The mark, or those of the readings where they differ: holds for certgp, undecided for paper."""
    if found.verdict in _MARKS:
        return _MARKS[found.verdict]
    told = ", ".join(f"{_MARKS[verdict]} for {name}" for name, verdict in found.readings)
    return f"{told}: depends on the {found.depends_on}" if found.verdict == MIXED else told


def _short_verdict(found: Finding) -> str:
    """The same in a narrow column: ✓ certgp, ? paper."""
    if found.verdict in _MARKS:
        return _MARKS[found.verdict]
    return ", ".join(f"{_MARKS[verdict].split()[0]} {name}" for name, verdict in found.readings)


def _how_sure(found: Finding) -> str:
    """In a few words; a command belongs on the page of its own."""
    return "" if found.verdict == NOT_RUN else _capitalised(found.brief)


def _evidence(found: Finding) -> str:
    """The numbers, an item each."""
    return "\n".join(f"- {_capitalised(part)}" for part in found.evidence.split("; "))


def _capitalised(text: str) -> str:
    """A capital letter at the start, but for names: ``certgp``, matern32, N = 5000."""
    first, _, rest = text.partition(" ")
    return f"{first[:1].upper()}{first[1:]} {rest}" if first.rstrip(":").isalpha() and first != "certgp:" else text
