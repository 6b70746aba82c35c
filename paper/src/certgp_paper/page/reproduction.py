"""docs/reproduction.md and the pages behind it, made from the results of ``certgp reproduce``.

    python -m certgp_paper.page paper/results docs/reproduction.md docs/results

The first page has the claims with their verdicts and a summary of each table with its picture. The folder
``reproduction`` beside it has a page for each experiment with all figures, one for the claims with numbers and rules,
and one for data sets. Nothing is computed here; figures are drawn from the rows of the results. A result that is not
there is shown as not run yet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from certgp.data.tables import replacing
from certgp_paper.experiments.confirm import MARGIN
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Result, Results, read_results
from certgp_paper.figures import save_drawing
from certgp_paper.page.claims import claims_page, claims_table
from certgp_paper.page.data_sets import data_page
from certgp_paper.page.markdown import markdown_table, shown
from certgp_paper.page.sections import SECTIONS, Section

FRONT = "reproduction.md"
_HEAD = """# Reproduction of the paper

Tables and figures of the paper, and the claims of its text that are listed below, beside what this library computes."""
_LEGEND = """**The tables below.** "Paper" is what the paper prints, "ours" what was computed here: means and, in
parentheses, standard deviations over splits; lower is better. **Bold ✓** is equal to the paper's figure at the
precision of its print, or better; bold alone the same on data that differ from the paper's, or may. The page is
generated (`make reproduction`) from `paper/results`; no figure in it is typed by hand."""


def pages(results: Results, pictures: Mapping[str, str]) -> dict[str, str]:
    """All pages by their path beside the first one; ``pictures`` has the link of each experiment's figure, by name."""
    behind = {f"reproduction/{section.name}.md": _own_page(section, results, pictures) for section in SECTIONS}
    return {
        FRONT: _front(results, pictures),
        "reproduction/claims.md": claims_page(results),
        "reproduction/data-sets.md": data_page(results),
        **behind,
    }


def write_page(folder: Path, path: Path, pictures: Path) -> None:
    """Read the results of a folder, draw them into the folder ``pictures`` and write the pages, each whole or not at
    all. The pages behind the first one go into a folder beside it.
    """
    results = read_results(folder)
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = {name: save_drawing(name, result.rows, pictures) for name, result in results.items() if result.rows}
    links = {name: os.path.relpath(file, path.parent).replace(os.sep, "/") for name, file in drawn.items()}
    for place, text in pages(results, links).items():
        file = path if place == FRONT else path.parent / place
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _front(results: Results, pictures: Mapping[str, str]) -> str:
    links = [f"[{section.heading}]({section.anchor})" for section in SECTIONS]
    links.append("[data sets, and what is left out](reproduction/data-sets.md)")
    contents = "**Contents:** [claims](#does-it-hold) with [numbers and rules](reproduction/claims.md) · "
    parts = [_HEAD, "## Does it hold?", claims_table(results), contents + " · ".join(links), _LEGEND]
    parts += [_summary(section, results, pictures) for section in SECTIONS]
    behind = ["claims", *(section.name for section in SECTIONS), "data-sets"]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *(f"reproduction/{name}" for name in behind), "```"]))
    return "\n\n".join(parts) + "\n"


def _summary(section: Section, results: Results, pictures: Mapping[str, str]) -> str:
    """What the first page says of an experiment."""
    result = results.get(section.name)
    if result is None or not result.rows:
        return f"## {section.heading}\n\nNot run yet: `certgp reproduce {section.name} --out paper/results`."
    parts = [f"## {section.heading}", f"{result.title}. {section.about}".strip()]
    parts += [text] if (text := section.summary(result.rows)) else []
    if section.name in pictures:
        parts.append(f"![{section.heading}]({pictures[section.name]})")
    parts.append(f"[All figures](reproduction/{section.name}.md). {_made_by(result)}".strip())
    return "\n\n".join(parts)


def _made_by(result: Result) -> str:
    """Which versions of the code made the cells, in a line."""
    counts: dict[str, int] = {}
    for row in result.made_by:
        counts[str(row["made_by"])] = counts.get(str(row["made_by"]), 0) + int(row["cells"])
    if not counts:
        return ""
    earlier = {maker: count for maker, count in counts.items() if not maker.startswith("version ")}
    current = sum(counts.values()) - sum(earlier.values())
    texts = [f"{current} of {sum(counts.values())} cells by recorded versions of their code"] if current else []
    if earlier:
        most = sorted(earlier, key=lambda maker: -earlier[maker])
        texts.append(f"{sum(earlier.values())} cells by earlier code ({', '.join(most)})")
    return f"Made by: {'; '.join(texts)}.{_confirmed(result)}{_up_to_date(result, sum(counts.values()))}"


def _up_to_date(result: Result, cells: int) -> str:
    """Recorded versions are not today's: how many cells the code would make the same, for all that is known."""
    if result.up_to_date is None:
        return ""
    others = cells - result.up_to_date
    count = f"{result.up_to_date} of the {cells}" if others else f"All {cells}"
    known = f" {count} cells are of the code as it was when these results were written, or confirmed for it"
    unknown = f"; whether it would give the figures of the other {others} again is not known" if others else ""
    return f"{known}{unknown}."


def _confirmed(result: Result) -> str:
    """How many cells later code has confirmed, by how many that were computed again, and how far these moved."""
    if not result.confirmed:
        return ""
    held, again = (sum(int(row[key]) for row in result.confirmed) for key in ("confirmed", "cells"))
    largest = max(float(row["largest_change"]) for row in result.confirmed)
    score = "NLPD" if result.confirmed[0]["score"] == "nlpd" else f"{result.confirmed[0]['score']}, relatively,"
    older = held - (held if result.up_to_date is None else result.up_to_date)
    since = f" For {older} of these or more, that code has been changed since, too." if older > 0 else ""
    return (
        f" {held} cells were confirmed for later code than their own by {again} like them that it computed again, "
        f"whose {score} moved by {largest:.4f} at most and by less than {MARGIN:g} on average in each group.{since}"
    )


_CONFIRMED = (
    "Confirmed for later code: of each group some cells, drawn at random, were computed again (`--confirm`). Where the "
    f"95 % t interval of the mean change of their score lies within {MARGIN:g} nats of NLPD, or 1 % of another figure, "
    "the others count as those of that version too. Times are not compared."
)
_CONFIRMED_COLUMNS = (
    "what",
    "for version",
    "cells confirmed",
    "by cells computed again",
    "mean change",
    "largest change",
)


def _confirmation(row: Row) -> tuple[str, ...]:
    again = f"{shown(row['cells'])} of {shown(row['of'])}"
    changes = (f"{float(row['mean_change']):+.4f}", f"{float(row['largest_change']):.4f}")
    return shown(row["what"]), shown(row["version"]), shown(row["confirmed"]), again, *changes


def _own_page(section: Section, results: Results, pictures: Mapping[str, str]) -> str:
    """All figures of an experiment."""
    parts = [f"# {section.heading}", "[Back to the overview](../reproduction.md)"]
    result = results.get(section.name)
    if result is None or not result.rows:
        return "\n\n".join([*parts, f"Not run yet: `certgp reproduce {section.name} --out paper/results`."]) + "\n"
    parts.append(f"{result.title}.")
    if section.name in pictures:
        parts.append(f"![{section.heading}](../{pictures[section.name]})")
    return "\n\n".join([*parts, *section.tables(result.rows), *_versions(section.name, result)]) + "\n"


def _versions(name: str, result: Result) -> list[str]:
    """Which version of the code made which cells."""
    if not result.made_by:
        return []
    lines = [(shown(row["what"]), shown(row["made_by"]), shown(row["cells"])) for row in result.made_by]
    text = (
        "A version is a hash of the code that a result depends on. Cells from before versions were recorded hold a "
        'hash of the whole tree: "commit" names the commit with this tree, "source" the hash itself where no commit '
        'has it (code between two commits), and "not recorded" cells that hold neither. `certgp reproduce '
        f"{name} --outdated --out paper/results` lists cells whose code has changed since, `--renew` computes them "
        "again, `--confirm` some of them."
    )
    parts = ["## Versions", text, markdown_table(("what", "made by", "cells"), lines)]
    if result.confirmed:
        parts += [_CONFIRMED, markdown_table(_CONFIRMED_COLUMNS, [_confirmation(row) for row in result.confirmed])]
    if result.moved:
        parts.append(
            f"{shown(result.moved['cells'])} cells were computed again with later code: NLPD moved by "
            f"{result.moved['mean']:.4f} on average and by {result.moved['largest']:.4f} at most."
        )
    return parts
