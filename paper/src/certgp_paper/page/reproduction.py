"""docs/reproduction.md, made from the results of ``certgp reproduce``: tables, figures, claims, what is missing.

    python -m certgp_paper.page paper/results docs/reproduction.md docs/results

Nothing is computed here; figures are drawn from the rows of the results. A result that is not there is shown as not run
yet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from certgp.data.tables import replacing
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED
from certgp_paper.datasets.catalogue import DATASETS
from certgp_paper.experiments.catalogue import experiment, experiment_names
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.linear_rows import DATA as LINEAR_DATA
from certgp_paper.experiments.results import Results, read_results, rows_of
from certgp_paper.figures import save_drawing
from certgp_paper.page.tables import SECTIONS, Section, markdown_table, summary
from certgp_paper.published import paper_name

_MARKS = {
    HOLDS: "✓ holds",
    FAILS: "✗ does not hold here",
    UNDECIDED: "? undecided here",
    NOT_RUN: "not run yet",
}
_TABLES = ("table-nlpd", "table-rmse", "table-deep", "sensitivity", "electric")
_HEAD = """# Reproduction

This page is generated (`make reproduction`) from the files that `certgp reproduce NAME --out paper/results` wrote; no
number on it is typed by hand. "Paper" is what the paper prints, "ours" what this library computed with the protocol of
the same section: means and, in parentheses, standard deviations over splits. The difference is ours minus the paper's,
lower being better everywhere, and is also given in standard deviations: those over splits of both, and that of the
paper's rounding, combined. **Bold with ✓** marks figures that are equal to the paper's at the precision of its print,
or better; bold alone the same on data that differ from the paper's, or may. Training times, which are from another
machine, are not marked. Why some figures of the paper's protocol differ from the paper's is in
[benchmarks](benchmarks.md#the-papers-protocol)."""


def page(results: Results, pictures: Mapping[str, str]) -> str:
    """The whole page; ``pictures`` has the link of each experiment's figure, by name."""
    parts = [_HEAD, _claims(results)]
    parts += [_section(section, results, pictures) for section in SECTIONS]
    parts.append(_missing(results))
    return "\n\n".join(parts) + "\n"


def write_page(folder: Path, path: Path, pictures: Path) -> None:
    """Read the results of a folder, draw them into the folder ``pictures`` and write the page, whole or not at all."""
    results = read_results(folder)
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = {name: save_drawing(name, result.rows, pictures) for name, result in results.items() if result.rows}
    links = {name: os.path.relpath(file, path.parent).replace(os.sep, "/") for name, file in drawn.items()}
    text = page(results, links)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _claims(results: Results) -> str:
    findings = [(claim, claim.judge(results)) for claim in CLAIMS]
    counts = {mark: sum(finding.verdict == mark for _, finding in findings) for mark in _MARKS}
    anchors = {section.name: section.anchor for section in SECTIONS}
    rows = [
        (
            claim.statement,
            f"[{claim.where}]({anchors[claim.experiment]})",
            _MARKS[finding.verdict],
            finding.evidence,
            claim.rule,
        )
        for claim, finding in findings
    ]
    head = (
        f"{counts[HOLDS]} hold, {counts[FAILS]} do not hold here, {counts[UNDECIDED]} are undecided here, "
        f"{counts[NOT_RUN]} are not run yet."
    )
    columns = ("claim", "where", "here", "numbers", "rule by which it is judged")
    return f"## Claims of the paper's text\n\n{head}\n\n{markdown_table(columns, rows)}"


def _section(section: Section, results: Results, pictures: Mapping[str, str]) -> str:
    rows = rows_of(results, section.name)
    if not rows:
        return f"## {section.heading}\n\nNot run yet: `certgp reproduce {section.name} --out paper/results`."
    parts = [f"## {section.heading}", results[section.name].title + "."]
    parts += [text] if section.note is not None and (text := section.note(rows)) else []
    parts += [text] if (text := summary(section, rows)) else []
    if section.name in pictures:
        parts.append(f"![{section.heading}]({pictures[section.name]})")
    return "\n\n".join([*parts, *section.tables(rows)])


def _missing(results: Results) -> str:
    """The paper's data sets, which of them the tables have and in which version; what is left out on purpose."""
    rows = [row for name in _TABLES for row in rows_of(results, name)]
    lines = [_data_line(name, rows) for name, info in DATASETS.items() if info.in_paper]
    table = markdown_table(("data set", "paper", "in the tables", "version"), lines)
    reasons = _reasons([line[0] for line in lines if line[2] == "no"])
    return "\n\n".join(
        [
            "## Data sets, and what could not be run",
            *(reasons or ["All data sets of the paper are in the tables above."]),
            "Figures of a version that differs from the paper's say nothing about the paper's own. [Data](data.md) "
            "says where the sets come from.",
            table,
            "Left out on purpose:",
            _left_out(),
        ]
    )


def _left_out() -> str:
    """What the experiments themselves say, once where several say the same."""
    texts: dict[str, list[str]] = {}
    for name in experiment_names():
        if text := experiment(name).left_out:
            texts.setdefault(text, []).append(f"`{name}`")
    return "\n".join(f"- {', '.join(names)}: {text}." for text, names in texts.items())


def _reasons(absent: Sequence[str]) -> list[str]:
    """Why data sets are in none of the tables."""
    waiting = [name for name in absent if name in LINEAR_DATA]
    not_at_hand = [name for name in absent if name not in LINEAR_DATA]
    texts = []
    if waiting:
        texts.append(f"Not run yet: {', '.join(waiting)} (`certgp reproduce table-nlpd`).")
    if not_at_hand:
        texts.append(
            f"In none of the tables: {', '.join(not_at_hand)}. The paper has them in its deep table only, and their "
            "files were not in the data directory when these results were computed. `certgp datasets fetch "
            f"{' '.join(not_at_hand)}` gets them; `certgp reproduce table-deep` and `electric` then use them."
        )
    return texts


def _data_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    info = DATASETS[name]
    used = [row for row in rows if row.get("data") in (name, paper_name(name))]  # rows may have either name
    notes = dict.fromkeys(str(row["note"]) for row in used if row.get("note"))
    version = "; ".join(notes) or ("as in the paper" if used else "")
    return (name, f"{info.n_rows:,} x {info.n_columns}", "yes" if used else "no", version)
