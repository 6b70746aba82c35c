"""A page about several outputs: all of them in one table, then a part for each, of which a reader may choose one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from certgp.markup import Markup, lower_headings, tag
from certgp.report import sections
from certgp.report.card import LEVELS, calibration, compare
from certgp.report.charts import section, table
from certgp.report.facts import Facts
from certgp.report.page import Report, assemble, links_to, parts_of

MOST_BYTES = 1_400_000  # of all parts; a page has at most 1.5 MB
_SHORT = ("know", "scores", "fitted", "proven")  # sections of an output whose charts have no room
_NAMED = 5  # outputs, in a sentence


def make_outputs_report(title: str, outputs: Sequence[Facts], most_bytes: int = MOST_BYTES) -> Report:
    """The page of several outputs. Where all charts would be too much, the last outputs have none, and say so."""
    named = [replace(each, anchor=f"output{j}-") for j, each in enumerate(outputs)]
    parts = fitting_parts([replace(each, columns=()) for each in named], most_bytes)
    names = ", ".join(each.target for each in named)
    learned = replace(named[0], anchor="", target=names, modelled=", ".join(each.modelled for each in named))
    main = [_chooser(named), _overview(named), sections.columns(learned), *parts]
    return assemble(title, _lead(named), main, named[0].made, has_choosers=True)


def fitting_parts(outputs: Sequence[Facts], most_bytes: int) -> list[Markup]:
    """A part for each output, whole ones first, then short ones, of so many bytes at most."""
    short = [_part(each, _SHORT) for each in outputs]
    left = most_bytes - sum(map(_size, short))
    found = []
    for facts, less in zip(outputs, short, strict=True):
        whole = _part(facts) if left > 0 else less
        left -= _size(whole) - _size(less)
        found.append(whole if left >= 0 else less)
    return found


def _size(part: Markup) -> int:
    return len(part.encode())


def _part(facts: Facts, only: Sequence[str] | None = None) -> Markup:
    found = parts_of(facts)
    shown = {key: each for key, each in found.items() if only is None or key in only}
    missing = "Charts of this output have no room on this page; a page about it alone has them."
    return lower_headings(
        tag(
            "article",
            tag("h1", facts.target),
            tag("p", sections.headline(facts), class_="lead"),
            tag("p", missing, class_="muted") if len(shown) < len(found) else None,
            links_to(facts, shown),
            sections.tiles(facts),
            *shown.values(),
            class_="output",
            id=_id_of(facts),
            aria_label=facts.target,
        )
    )


def _id_of(facts: Facts) -> str:
    return facts.id_of("part")


def _chooser(outputs: Sequence[Facts]) -> Markup:
    """Shown where scripts run: one output at a time, or all."""
    options = [tag("option", "all outputs", value=""), *(tag("option", f.target, value=_id_of(f)) for f in outputs)]
    return tag(
        "div",
        tag("label", "Show", for_="output-choice"),
        tag("select", *options, id="output-choice"),
        id="output-chooser",
        class_="chooser",
        hidden=True,
    )


def _overview(outputs: Sequence[Facts]) -> Markup:
    header = ["output", "RMSE", "NLPD", "in 95 %", "approximation", "best simple model", "its RMSE", "its NLPD"]
    rows = []
    for facts in outputs:
        model, best = facts.card.model, facts.card.best_baseline
        share = f"{100 * model.coverage(0.95):.1f} %"
        simple = ["not known", "", ""] if best is None else [best.name, f"{best.rmse:.4g}", f"{best.nlpd:.3f}"]
        proven = "not certified" if facts.certificate is None else facts.certificate.verdict
        link = tag("a", facts.target, href=f"#{_id_of(facts)}")
        rows.append([link, f"{model.rmse:.4g}", f"{model.nlpd:.3f}", share, proven, *simple])
    note = "Each output is judged by its held-out rows, in its own units; of NLPD only differences within a row count."
    return section("overview", "All outputs", table(header, rows), tag("p", note, class_="muted"))


def _lead(outputs: Sequence[Facts]) -> str:
    """The page in a few sentences."""
    found: dict[str, list[str]] = {words: [] for words in _JUDGED.values()}
    useless = []
    for facts in outputs:
        best = facts.card.best_baseline
        if facts.card.is_useless:
            useless.append(facts.target)
        elif best is not None:
            found[_JUDGED[compare(facts.card.model, best)]].append(facts.target)
    told = [f"A model of {len(outputs)} outputs."]
    parts = [f"{_listed(names)} {words} the best simple model" for words, names in found.items() if names]
    if parts:
        told.append(f"It predicts {', '.join(parts)}.")
    if useless:
        told.append(f"Do not use it for {_listed(useless)}: a constant predicts as well.")
    wrong = [each.target for each in outputs if any(calibration(each.card.model, level) for level in LEVELS)]
    told.append(f"Intervals of {_listed(wrong)} need care." if wrong else "Its intervals can be trusted.")
    return " ".join(told)


_JUDGED = {-1: "better than", 0: "about as well as", 1: "worse than"}


def _listed(names: Sequence[str]) -> str:
    shown, more = names[:_NAMED], len(names) - _NAMED
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
