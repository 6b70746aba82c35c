"""Claims with their verdicts: a table for the first page, and a page with the numbers and rules."""

from __future__ import annotations

from certgp_paper.claims import CLAIMS, FAILS, HOLDS, MIXED, NOT_RUN, UNDECIDED, Claim, Finding
from certgp_paper.experiments.results import Results
from certgp_paper.page.markdown import markdown_table, slug
from certgp_paper.page.sections import SECTIONS

_MARKS = {HOLDS: "✓ holds", FAILS: "✗ does not hold", UNDECIDED: "? undecided", MIXED: "± differs", NOT_RUN: "not run"}
_HOW = """A claim that rests on random splits or draws **holds** where every comparison it makes is clear, and **does
not hold** where one is clear the other way, at the 5 % level for all its comparisons together (t quantiles, Holm's
correction, the standard error of Nadeau and Bengio for splits that share rows). Otherwise, and with fewer than five
splits, it is **undecided**. Where our training and the paper's give different answers, it **differs**."""


def claims_table(results: Results) -> str:
    """All claims and verdicts, in a screen."""
    judged = _judged(results)
    counts = {mark: sum(found.verdict == mark for _, found in judged) for mark in _MARKS}
    words = {
        HOLDS: "hold here",
        FAILS: "do not",
        UNDECIDED: "are undecided",
        MIXED: "depend on the variant",
        NOT_RUN: "not run",
    }
    told = ", ".join(f"{counts[mark]} {text}" for mark, text in words.items() if counts[mark])
    head = (
        f"Of {len(judged)} claims of the paper's text: {told}. A verdict on random splits or draws is a test at the "
        "5 % level over all comparisons of the claim; what is not clear on five of them at least is undecided. "
        "`certgp` and `paper` are our training and the paper's. Links lead to numbers and rules."
    )
    rows = [
        (
            _short_verdict(found),
            f"[{claim.statement}](reproduction/claims.md#{slug(claim.statement)})",
            _how_sure(found),
        )
        for claim, found in judged
    ]
    return f"{head}\n\n{markdown_table(('here', 'claim', 'how sure'), rows)}"


def claims_page(results: Results) -> str:
    """Each claim with its numbers and its rule."""
    headings = {section.name: (section.heading, section.anchor) for section in SECTIONS}
    parts = ["# Claims of the paper, one by one", "[Back to the overview](../reproduction.md)", _HOW]
    for claim, found in _judged(results):
        heading, anchor = headings[claim.experiment]
        parts.append(
            "\n\n".join(
                [
                    f"## {claim.statement}",
                    f"**{_verdict(found)}**",
                    _evidence(found),
                    f"*Rule:* {claim.rule}.",
                    f"*In the paper:* {claim.where}. *Here:* [{heading}](../reproduction.md{anchor}), "
                    f"[all figures]({claim.experiment}.md).",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def _judged(results: Results) -> list[tuple[Claim, Finding]]:
    return [(claim, claim.judge(results)) for claim in CLAIMS]


def _verdict(found: Finding) -> str:
    """The mark, and those of the variants where they differ."""
    if found.verdict != MIXED:
        return _MARKS[found.verdict]
    return "± " + ", ".join(f"{name} {_MARKS[verdict]}" for name, verdict in found.variants)


def _short_verdict(found: Finding) -> str:
    """The same in a narrow column: ± certgp ✓, paper ?."""
    if found.verdict != MIXED:
        return _MARKS[found.verdict]
    return "± " + ", ".join(f"{name} {_MARKS[verdict].split()[0]}" for name, verdict in found.variants)


def _how_sure(found: Finding) -> str:
    """In a few words; a command belongs on the page of its own."""
    return "" if found.verdict == NOT_RUN else found.brief


def _evidence(found: Finding) -> str:
    """The numbers, an item each."""
    return "\n".join(f"- {part}" for part in found.evidence.split("; "))
