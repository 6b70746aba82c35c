"""Tables and figures as Markdown text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from certgp_paper.experiments.comparison import Comparison
from certgp_paper.experiments.experiment import Row

Cells = tuple[str, ...]

# columns of rows, in words
_WORDS = {
    "D": "dimension",
    "N": "rows N",
    "a_priori_paper": "rank by the paper's theorem",
    "a_priori_sharp": "rank by our theorem",
    "coverage": "share of the grid in the 95 % band",
    "coverage95": "share of test rows in the 95 % band",
    "cpu_seconds": "CPU seconds",
    "d": "embedding dimension d",
    "draws": "draws of frequencies",
    "distance_lower": "distance of the band's lower end",
    "distance_mean": "distance of the mean",
    "distance_upper": "distance of the band's upper end",
    "epoch_cpu_seconds": "CPU seconds an epoch",
    "expected_rank": "rank that would suffice, estimated",
    "evidence_per_row": "log evidence per row",
    "kl": "KL(exact, low rank), mean",
    "kl_first": "KL of the first draw",
    "kl_largest": "largest KL",
    "kl_least": "least KL",
    "kl_per_row": "KL per row at that rank",
    "kl_sd": "standard deviation of KL",
    "last_gain_per_row": "last gain in evidence per row",
    "lower": "certified from",
    "more_than": "needs more than",
    "nlpd": "NLPD",
    "nlpd_largest": "largest NLPD",
    "nlpd_least": "least NLPD",
    "nlpd_mean": "mean NLPD",
    "paper_nlpd": "NLPD in the paper",
    "paper_nlpd_sd": "its standard deviation in the paper",
    "paper_seconds": "seconds in the paper, 32 cores",
    "peak_gb": "peak memory, GB",
    "rank": "rank r",
    "reference": "rank certified through a reference",
    "rmse": "RMSE",
    "rmse_inputs": "RMSE where the data are",
    "rows_gb": "the rows themselves, GB",
    "sd_over_seeds": "standard deviation over seeds",
    "sd_over_splits": "standard deviation over splits",
    "steepest": "largest slope left per row",
    "trace_paper": "by the paper's trace bound",
    "trace_sharp": "by our trace bound",
    "training_seconds": "CPU seconds of training",
    "upper": "certified to",
    "width": "width of the 95 % band",
    "width_of": "as wide as",
}


def in_words(column: str) -> str:
    """The name of a column for readers."""
    return _WORDS.get(column, column.replace("_", " "))


def slug(heading: str) -> str:
    """Where links to a heading lead to: the heading as MyST turns it into an anchor."""
    return re.sub(r"[^\w\-]", "", heading.strip().lower().replace(" ", "-"))


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; bars inside cells are escaped, line breaks become blanks."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(entry) for entry in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def shown(value: object) -> str:
    """A value of a row as text."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def with_sd(value: float | None, sd: float | None, digits: int) -> str:
    """0.44 (0.01), or what is known of it."""
    if value is None:
        return ""
    return f"{value:.{digits}f}" if sd is None else f"{value:.{digits}f} ({sd:.{digits}f})"


def same_data(row: Row) -> bool:
    """Were the data the paper's own for certain, all of them? Otherwise the row says how they differ or may."""
    return not row.get("note")


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


def all_columns(rows: Sequence[Row], hidden: Sequence[str] = ()) -> str:
    """Every column that has a value in some row, named in words."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in hidden]
    columns = [key for key in columns if any(row.get(key) is not None for row in rows)]
    lines = [[shown(row.get(key)) for key in columns] for row in rows]
    return markdown_table([in_words(key) for key in columns], lines)
