"""How the rows of each experiment are shown as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certgp.experiments.comparison import Comparison
from certgp.experiments.experiment import Row
from certgp.experiments.results import chosen_rows, linear_comparison, metric_comparison, number

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """An experiment on the page."""

    name: str
    heading: str
    tables: Callable[[Sequence[Row]], list[str]]
    comparison: Callable[[Row], Comparison] | None = None  # what "equal or better" is counted over


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; bars inside cells are escaped, line breaks become blanks."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(entry) for entry in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def summary(section: Section, rows: Sequence[Row]) -> str:
    """How many of the figures that can be compared are equal or better: those on the paper's own data, and others."""
    if section.comparison is None:
        return ""
    verdicts = [(section.comparison(row).equal_or_better, same_data(row)) for row in rows]
    own = [better for better, same in verdicts if better is not None and same]
    others = [better for better, same in verdicts if better is not None and not same]
    texts = []
    if own:
        texts.append(f"{sum(own)} of the {len(own)} figures that have one in the paper are equal or better.")
    if others:
        texts.append(f"On data that differ from the paper's, {sum(others)} of {len(others)} are, which proves little.")
    return " ".join(texts)


def same_data(row: Row) -> bool:
    """Were the rows the paper's own, all of them? Otherwise the row says how they differ."""
    return not row.get("note")


# ---------------------------------------------------------------------------------------------- figures as text


def with_sd(value: float | None, sd: float | None, digits: int) -> str:
    """0.44 (0.01), or what is known of it."""
    if value is None:
        return ""
    return f"{value:.{digits}f}" if sd is None else f"{value:.{digits}f} ({sd:.{digits}f})"


def compared(row: Row, comparison: Comparison, digits: int) -> Cells:
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
                    *compared(row, linear_comparison(row), 3),
                    _shown(row.get("splits")),
                )
                for row in some
            ]
            parts.append("\n\n".join([heading, *(f"Data: {note}." for note in notes), markdown_table(columns, lines)]))
    return parts


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
        "seconds: paper",
        "ours",
        "splits",
    )
    parts = []
    for data in _values(rows, "data"):
        some = chosen_rows(rows, data=data)
        lines = [
            (
                _shown(row.get("method")),
                *compared(row, metric_comparison(row, "nlpd"), 3),
                *compared(row, metric_comparison(row, "rmse"), 3)[:2],
                *compared(row, metric_comparison(row, "seconds"), 0)[:2],
                _shown(row.get("splits")),
            )
            for row in some
        ]
        notes = [f"Data: {note}." for note in _values(some, "note") if note]
        parts.append("\n\n".join([f"### {data}", *notes, markdown_table(columns, lines)]))
    return parts


def _sensitivity(rows: Sequence[Row]) -> list[str]:
    columns = ("data", "method", "d", "rank", "paper", "ours", "difference", "in sd", "seconds: paper", "ours")
    lines = [
        (
            *(_shown(row.get(key)) for key in ("data", "method", "d", "rank")),
            *compared(row, metric_comparison(row, "nlpd"), 3),
            *compared(row, metric_comparison(row, "seconds"), 0)[:2],
        )
        for row in rows
    ]
    return [markdown_table(columns, lines)]


def _electric(rows: Sequence[Row]) -> list[str]:
    columns = ("data", "method", "share of the rows", "rows", "NLPD", "RMSE", "seconds")
    lines = [
        (
            *(_shown(row.get(key)) for key in ("data", "method", "fraction", "rows")),
            with_sd(number(row, "nlpd"), None, 3),
            with_sd(number(row, "rmse"), None, 3),
            with_sd(number(row, "seconds"), None, 0),
        )
        for row in rows
    ]
    return [markdown_table(columns, lines)]


def _figure1(rows: Sequence[Row]) -> list[str]:
    """Rank against dimension at the largest N, first seed; all columns that the rows have."""
    return [_all_columns(_largest_run(rows))]


def _figure2(rows: Sequence[Row]) -> list[str]:
    return [_all_columns(_largest_run(rows))]


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
    Section("figure1", "Figure 1: rank against dimension", _figure1),
    Section("figure2", "Figure 2: divergence against rank", _figure2),
    Section("table-nlpd", "Linear models: NLPD", _linear, linear_comparison),
    Section("table-rmse", "Linear models: RMSE", _linear, linear_comparison),
    Section("curves", "A curve from 25 points", _scores),
    Section("ranks", "The curve at growing rank", _scores),
    Section("table-deep", "Deep models", _deep, _nlpd),
    Section("sensitivity", "Deep models over embedding dimension and rank", _sensitivity, _nlpd),
    Section("electric", "Fewer training points", _electric),
)
