"""How the rows of each experiment are shown as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certgp_paper.experiments.comparison import Comparison
from certgp_paper.experiments.deep_effort import budgets
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.linear_rows import VARIANTS
from certgp_paper.experiments.results import chosen_rows, linear_comparison, metric_comparison, number
from certgp_paper.page.curve_notes import curve_note

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """An experiment on the page."""

    name: str
    heading: str
    tables: Callable[[Sequence[Row]], list[str]]
    comparison: Callable[[Row], Comparison] | None = None  # what "equal or better" is counted over
    note: Callable[[Sequence[Row]], str] | None = None  # what one must know before reading the tables

    @property
    def anchor(self) -> str:
        """Where links on the page lead to: the heading as MkDocs and GitHub turn it into one."""
        return "#" + re.sub(r"[^\w\- ]", "", self.heading.lower()).replace(" ", "-")


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; bars inside cells are escaped, line breaks become blanks."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(entry) for entry in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def summary(section: Section, rows: Sequence[Row]) -> str:
    """How many of the figures that can be compared are equal or better, for each variant of the protocol."""
    if section.comparison is None:
        return ""
    variants = _values(rows, "variant")
    texts = [(variant, _counted(section.comparison, chosen_rows(rows, variant=variant))) for variant in variants]
    return "\n\n".join(f"`{variant}`: {text}" if variant else text for variant, text in texts if text)


def _counted(comparison: Callable[[Row], Comparison], rows: Sequence[Row]) -> str:
    """Those on the paper's own data, and others."""
    verdicts = [(comparison(row).equal_or_better, same_data(row)) for row in rows]
    own = [better for better, same in verdicts if better is not None and same]
    others = [better for better, same in verdicts if better is not None and not same]
    texts = []
    if own:
        texts.append(f"{sum(own)} of the {len(own)} figures that have one in the paper are equal or better.")
    if others:
        texts.append(
            f"On data that differ from the paper's, or may, {sum(others)} of {len(others)} are, which proves little."
        )
    return " ".join(texts)


def same_data(row: Row) -> bool:
    """Were the data the paper's own for certain, all of them? Otherwise the row says how they differ or may."""
    return not row.get("note")


# ---------------------------------------------------------------------------------------------- figures as text


def with_sd(value: float | None, sd: float | None, digits: int) -> str:
    """0.44 (0.01), or what is known of it."""
    if value is None:
        return ""
    return f"{value:.{digits}f}" if sd is None else f"{value:.{digits}f} ({sd:.{digits}f})"


def comparison_cells(row: Row, comparison: Comparison, digits: int) -> Cells:
    """Paper, ours (bold where equal or better, ticked if on the paper's own data), difference, that in standard
    deviations.
    """
    ours = with_sd(comparison.ours, comparison.ours_sd, digits)
    difference, in_sd = comparison.difference, comparison.in_sd
    return (
        with_sd(comparison.paper, comparison.paper_sd, digits),
        ours if not comparison.equal_or_better else f"**{ours}** ✓" if same_data(row) else f"**{ours}**",
        "" if difference is None else f"{difference:+.{digits}f}",
        "" if in_sd is None else f"{in_sd:+.1f}",
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _values(rows: Sequence[Row], column: str) -> list[object]:
    return list(dict.fromkeys(row.get(column) for row in rows))


# ---------------------------------------------------------------------------------------------- tables


def _linear(rows: Sequence[Row]) -> list[str]:
    """A table for each variant of the protocol and each data set."""
    parts = []
    for variant in _values(rows, "variant"):
        for data in _values(chosen_rows(rows, variant=variant), "data"):
            some = chosen_rows(rows, variant=variant, data=data)
            heading = f"### {data}" + (f", {variant}" if variant else "")
            notes = [str(note) for note in _values(some, "note") if note]
            columns = ("method", "rank", "paper", "ours", "difference", "in sd", "splits")
            lines = [
                (
                    _shown(row.get("method")),
                    _shown(row.get("rank")),
                    *comparison_cells(row, linear_comparison(row), 3),
                    _shown(row.get("splits")),
                )
                for row in some
            ]
            parts.append("\n\n".join([heading, *(f"Data: {note}." for note in notes), markdown_table(columns, lines)]))
    return parts


def _variants(rows: Sequence[Row]) -> str:
    present = [variant for variant in VARIANTS if chosen_rows(rows, variant=variant)]
    return "\n".join(f"- `{variant}`: {VARIANTS[variant]}." for variant in present)


def _deep(rows: Sequence[Row]) -> list[str]:
    """A table for each data set: NLPD in full, RMSE and seconds beside it."""
    columns = (
        "method",
        "NLPD: paper",
        "ours",
        "difference",
        "in sd",
        "RMSE: paper",
        "ours",
        "seconds: paper, 32 cores",
        "ours, wall",
        "ours, CPU",
        "splits",
    )
    parts = []
    for data in _values(rows, "data"):
        some = chosen_rows(rows, data=data)
        lines = [
            (
                _shown(row.get("method")),
                *comparison_cells(row, metric_comparison(row, "nlpd"), 3),
                *comparison_cells(row, metric_comparison(row, "rmse"), 3)[:2],
                *_times(row),
                _shown(row.get("splits")),
            )
            for row in some
        ]
        notes = [f"Data: {note}." for note in _values(some, "note") if note]
        parts.append("\n\n".join([f"### {data}", *notes, markdown_table(columns, lines)]))
    return parts


def _times(row: Row) -> Cells:
    """The paper's seconds and ours, unmarked: those were measured on another machine."""
    wall = metric_comparison(row, "seconds")
    paper, ours = with_sd(wall.paper, wall.paper_sd, 0), with_sd(wall.ours, wall.ours_sd, 0)
    return paper, ours, with_sd(number(row, "cpu_seconds"), None, 0)


def _budgets(rows: Sequence[Row]) -> str:
    """What each method is given, in a column for each data set."""
    sizes = {str(row.get("data")): int(n) for row in rows if (n := number(row, "rows")) is not None}
    if not sizes:
        return ""
    words = [budgets(n) for n in sizes.values()]
    columns = ("trained", *(f"{data}, {n:,} rows" for data, n in sizes.items()))
    lines = [(methods, *(each[methods] for each in words)) for methods in words[0]]
    return (
        "The paper ran all methods for 100 epochs of Adam in batches of 1,000 rows, on 32 cores. Here each has a "
        "budget for one thread. Wall seconds were measured while other programs ran, CPU seconds depend less on those; "
        "neither is set against the paper's, which are from another machine. The figure shows means over the splits "
        "that all methods of a data set have, the tables means over all splits of each.\n\n"
    ) + markdown_table(columns, lines)


def _sensitivity(rows: Sequence[Row]) -> list[str]:
    columns = ("data", "method", "d", "rank", "paper", "ours", "difference", "in sd")
    times = ("seconds: paper, 32 cores", "ours, wall", "ours, CPU", "splits")
    lines = [
        (
            *(_shown(row.get(key)) for key in ("data", "method", "d", "rank")),
            *comparison_cells(row, metric_comparison(row, "nlpd"), 3),
            *_times(row),
            _shown(row.get("splits")),
        )
        for row in rows
    ]
    return [markdown_table((*columns, *times), lines)]


def _electric(rows: Sequence[Row]) -> list[str]:
    columns = ("data", "method", "share of the rows", "rows", "NLPD", "RMSE", "seconds: wall", "CPU")
    lines = [
        (
            *(_shown(row.get(key)) for key in ("data", "method", "fraction", "rows")),
            with_sd(number(row, "nlpd"), None, 3),
            with_sd(number(row, "rmse"), None, 3),
            with_sd(number(row, "seconds"), None, 0),
            with_sd(number(row, "cpu_seconds"), None, 0),
        )
        for row in rows
    ]
    return [markdown_table(columns, lines)]


def _figure1(rows: Sequence[Row]) -> list[str]:
    """Rank against dimension at the largest N, first seed; all columns that the rows have."""
    return [_all_columns(_largest_run(rows))]


def _figure2(rows: Sequence[Row]) -> list[str]:
    return [_all_columns(_largest_run(rows))]


def _runs_shown(rows: Sequence[Row]) -> str:
    """Which runs the table shows, and which the figure."""
    run = _largest_run(rows)
    n, seed = (_shown(run[0].get(key)) for key in ("N", "seed"))
    seeds = ", ".join(_shown(seed) for seed in _values([row for row in rows if _shown(row.get("N")) == n], "seed"))
    return (
        f"The table shows seed {seed} at N = {n}; the figure medians over the seeds that there are at this N ({seeds}; "
        "the Matern kernel may have fewer), with bars from the least to the largest."
    )


def _largest_run(rows: Sequence[Row]) -> list[Row]:
    largest = max((number(row, "N") or 0.0 for row in rows), default=0.0)
    some = [row for row in rows if (number(row, "N") or 0.0) == largest]
    return [row for row in some if row.get("seed") == some[0].get("seed")]


def _scores(rows: Sequence[Row]) -> list[str]:
    """Rows that are scores; points and curves are in the figure."""
    scores = chosen_rows(rows, kind="scores")
    return [_all_columns(scores, hidden=("kind",))] if scores else []


def _all_columns(rows: Sequence[Row], hidden: Sequence[str] = ()) -> str:
    """Every column that has a value in some row."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in hidden]
    columns = [key for key in columns if any(row.get(key) is not None for row in rows)]
    return markdown_table(columns, [[_shown(row.get(key)) for key in columns] for row in rows])


def _nlpd(row: Row) -> Comparison:
    return metric_comparison(row, "nlpd")


SECTIONS = (
    Section("figure1", "Figure 1: rank against dimension", _figure1, note=_runs_shown),
    Section("figure2", "Figure 2: divergence against rank", _figure2),
    Section("table-nlpd", "Linear models: NLPD", _linear, linear_comparison, _variants),
    Section("table-rmse", "Linear models: RMSE", _linear, linear_comparison, _variants),
    Section("curves", "A curve from 25 points", _scores, note=curve_note),
    Section("ranks", "The curve at growing rank", _scores, note=curve_note),
    Section("table-deep", "Deep models", _deep, _nlpd, _budgets),
    Section("sensitivity", "Deep models over embedding dimension and rank", _sensitivity, _nlpd),
    Section("electric", "Fewer training points", _electric),
)
