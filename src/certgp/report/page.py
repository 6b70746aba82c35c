"""A report as one page of HTML: no file beside it, no request, readable without JavaScript."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from certgp.data.tables import replacing
from certgp.markup import Markup, tag
from certgp.report import sections
from certgp.report.facts import Facts
from certgp.report.ranks import rank_section

_PARTS = {
    "know": "What to know",
    "scores": "How good it is",
    "fitted": "What was fitted",
    "columns": "Columns",
    "predictions": "Predictions",
    "inputs": "Inputs",
    "proven": "What is proven",
    "rank": "Which rank",
}


@dataclass(frozen=True)
class Report:
    """A page about a fitted model; a notebook shows it in a frame."""

    html: str

    def save(self, path: str | Path) -> None:
        """Write the page; the file appears whole or not at all."""
        with replacing(Path(path)) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40rem;border:0" title="report"></iframe>'


def make_report(facts: Facts) -> Report:
    """The page of these facts."""
    shown = parts_of(facts)
    main = [links_to(facts, shown), sections.tiles(facts), *shown.values()]
    return assemble(facts.title, sections.headline(facts), main, facts.made, has_choosers=bool(facts.ranks))


def parts_of(facts: Facts) -> dict[str, Markup]:
    """The sections of a page that there are, in their order."""
    found = {
        "know": sections.warnings(facts),
        "scores": sections.scores(facts),
        "fitted": sections.fitted(facts),
        "columns": sections.columns(facts),
        "predictions": sections.predictions(facts),
        "inputs": sections.inputs(facts),
        "proven": sections.certificate(facts),
        "rank": rank_section(facts),
    }
    return {key: section for key, section in found.items() if section is not None}


def links_to(facts: Facts, shown: Iterable[str]) -> Markup:
    """Links to some sections."""
    links = [tag("li", tag("a", _PARTS[key], href=f"#{facts.id_of(key)}")) for key in shown]
    of = f" of {facts.target}" if facts.anchor else ""
    return tag("nav", tag("ul", *links), aria_label=f"sections{of}")


def assemble(title: str, lead: str, main: Sequence[Markup | None], made: str, *, has_choosers: bool) -> Report:
    """A whole page."""
    script = _asset("page.js") if has_choosers else ""
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("p", lead, class_="lead")),
        tag("main", *main),
        tag("footer", tag("p", f"{made}. Held-out rows appear as counts and averages only.")),
        tag("script", Markup(script)) if script else None,
    )
    return Report(f"<!doctype html>\n{tag('html', page_head(title, script), body, lang='en')}\n")


def page_head(title: str, script: str, connect: str = "'none'") -> Markup:
    """Nothing may be fetched but from ``connect``, and no other script than ours may run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(_asset("page.css"))),
    )


def _asset(name: str) -> str:
    return files("certgp.report").joinpath(name).read_text(encoding="utf-8")
