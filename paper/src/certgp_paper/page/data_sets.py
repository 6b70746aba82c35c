"""The paper's data sets, which of them the tables have and in which version; what is left out on purpose."""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.datasets.catalogue import DATASETS
from certgp_paper.experiments.catalogue import experiment, experiment_names
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.linear_rows import DATA as LINEAR_DATA
from certgp_paper.experiments.results import Results, rows_of
from certgp_paper.page.markdown import markdown_table
from certgp_paper.published import paper_name

_TABLES = ("table-nlpd", "table-rmse", "table-deep", "sensitivity", "electric")


def data_page(results: Results) -> str:
    """A page of its own."""
    rows = [row for name in _TABLES for row in rows_of(results, name)]
    lines = [_data_line(name, rows) for name, info in DATASETS.items() if info.in_paper]
    table = markdown_table(("data set", "rows and columns in the paper", "in the tables", "version"), lines)
    reasons = _reasons([line[0] for line in lines if line[2] == "no"])
    return "\n\n".join(
        [
            "# Data sets, and what is left out",
            "[Back to the overview](../reproduction.md)",
            *(reasons or ["All data sets of the paper are in the tables."]),
            "Figures of a version that differs from the paper's say nothing about the paper's own. [Data](../data.md) "
            "says where the sets come from.",
            table,
            "## Left out on purpose",
            _left_out() + "\n",
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
