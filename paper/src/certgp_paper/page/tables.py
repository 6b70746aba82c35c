"""The full tables of each experiment, for the pages behind the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from certgp_paper.experiments.deep_cells import PAPER_VARIANT
from certgp_paper.experiments.deep_effort import FULL, budgets
from certgp_paper.experiments.deep_table import RATES_CHOSEN
from certgp_paper.experiments.deep_table import VARIANTS as DEEP_VARIANTS
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.linear_rows import VARIANTS
from certgp_paper.experiments.results import chosen_rows, linear_comparison, metric_comparison, number
from certgp_paper.page.markdown import Cells, all_columns, comparison_cells, markdown_table, shown, with_sd
from certgp_paper.page.reasons import reason

_TIMES = ("seconds in the paper, 32 cores", "our wall seconds", "our CPU seconds")
_COMPARED = ("paper", "ours", "difference", "in standard deviations")


def distinct(rows: Sequence[Row], column: str) -> list[object]:
    """Values of a column, in the order in which they appear."""
    return list(dict.fromkeys(row.get(column) for row in rows))


def linear_tables(rows: Sequence[Row]) -> list[str]:
    """What the variants are, then a table for each of them and each data set."""
    parts = [describe_variants(rows)]
    for variant in distinct(rows, "variant"):
        for data in distinct(chosen_rows(rows, variant=variant), "data"):
            some = chosen_rows(rows, variant=variant, data=data)
            heading = f"## {data}" + (f", {variant}" if variant else "")
            notes = [f"Data: {note}." for note in distinct(some, "note") if note]
            parts.append("\n\n".join([heading, *notes, _linear_table(some)]))
    return parts


def _linear_table(rows: Sequence[Row]) -> str:
    lines = [
        (
            shown(row.get("method")),
            shown(row.get("rank")),
            *comparison_cells(row, linear_comparison(row), 3),
            shown(row.get("splits")),
            reason(row, linear_comparison(row)),
        )
        for row in rows
    ]
    return markdown_table(("method", "rank r", *_COMPARED, "splits", "why it is far from the paper's"), lines)


def describe_variants(rows: Sequence[Row], variants: Mapping[str, str] = VARIANTS) -> str:
    """What each variant of a table is."""
    present = [variant for variant in variants if chosen_rows(rows, variant=variant)]
    return "\n".join(f"- `{variant}`: {variants[variant]}." for variant in present)


def deep_tables(rows: Sequence[Row]) -> list[str]:
    """What the variants are; a table for each data set: NLPD in full, RMSE and seconds beside it; what each method was
    given."""
    columns = (
        "method",
        *(f"NLPD: {name}" if name == "paper" else name for name in _COMPARED),
        "RMSE: paper",
        "ours",
        *_TIMES,
        "splits",
    )
    parts = [describe_variants(rows, DEEP_VARIANTS)]
    for data in distinct(rows, "data"):
        some = chosen_rows(rows, data=data)
        lines = [
            (
                method_and_variant(row),
                *comparison_cells(row, metric_comparison(row, "nlpd"), 3),
                *comparison_cells(row, metric_comparison(row, "rmse"), 3)[:2],
                *_times(row),
                shown(row.get("splits")),
            )
            for row in some
        ]
        notes = [f"Data: {note}." for note in distinct(some, "note") if note]
        parts.append("\n\n".join([f"## {data}", *notes, markdown_table(columns, lines)]))
    return [*parts, *_budgets(rows)]


def method_and_variant(row: Row) -> str:
    """DMGP (paper), or the method alone where there is one variant of it."""
    variant = row.get("variant")
    return shown(row.get("method")) + (f" ({variant})" if variant else "")


def _times(row: Row) -> Cells:
    """The paper's seconds and ours, unmarked: those were measured on another machine."""
    wall = metric_comparison(row, "seconds")
    paper, ours = with_sd(wall.paper, wall.paper_sd, 0), with_sd(wall.ours, wall.ours_sd, 0)
    return paper, ours, with_sd(number(row, "cpu_seconds"), None, 0)


def _budgets(rows: Sequence[Row]) -> list[str]:
    """What each method is given, in a column for each data set."""
    sizes = {str(row.get("data")): int(n) for row in rows if (n := number(row, "rows")) is not None}
    if not sizes:
        return []
    words = [budgets(n) for n in sizes.values()]
    columns = ("trained", *(f"{data}, {n:,} rows" for data, n in sizes.items()))
    lines = [(methods, *(each[methods] for each in words)) for methods in words[0]]
    text = (
        "The paper ran all methods for 100 epochs of Adam in batches of 1,000 rows, on 32 cores. Here each has a "
        "budget for one thread. Wall seconds were measured while other programs ran, CPU seconds depend less on those; "
        "neither is set against the paper's, which are from another machine. The figure shows means over the splits "
        "that all methods of a data set have, the tables means over all splits of each."
    )
    return [
        f"## How long each method was trained\n\n{text}\n\n{markdown_table(columns, lines)}\n\n{recipe_rates(rows)}"
    ]


def recipe_rates(rows: Sequence[Row]) -> str:
    """Learning rates of the network by the paper's recipe on the data sets of these rows, and where they come from."""
    sets = [str(data) for data in distinct(chosen_rows(rows, variant=PAPER_VARIANT), "data")]
    if not sets:
        return ""
    rates = {data: FULL.recipe_rate(data) for data in sets}
    chosen = [f"{rates[data]:g} on {data}" for data in sets if data in RATES_CHOSEN]
    others = [f"{rates[data]:g} on {data}" for data in sets if data not in RATES_CHOSEN]
    text = "The paper does not print the network's learning rate. By the paper's recipe it is here "
    parts = [f"{' and '.join(chosen)}, chosen by held-out training rows of split 0"] if chosen else []
    parts += [f"{', '.join(others)}, which was not tried there"] if others else []
    return f"{text}{'; '.join(parts)}."


def sensitivity_tables(rows: Sequence[Row]) -> list[str]:
    """A table for each data set and method."""
    parts = []
    for data in distinct(rows, "data"):
        for method in distinct(chosen_rows(rows, data=data), "method"):
            some = chosen_rows(rows, data=data, method=method)
            lines = [
                (
                    *(shown(row.get(key)) for key in ("d", "rank")),
                    *comparison_cells(row, metric_comparison(row, "nlpd"), 3),
                    *_times(row),
                    shown(row.get("splits")),
                )
                for row in some
            ]
            columns = ("embedding dimension d", "rank r", *_COMPARED, *_TIMES, "splits")
            parts.append(f"## {data}, {method}\n\n{markdown_table(columns, lines)}")
    return parts


def electric_tables(rows: Sequence[Row]) -> list[str]:
    """One table."""
    scores = {"nlpd": 3, "rmse": 3, "seconds": 0, "cpu_seconds": 0}
    columns = ("data", "method", "share of the rows", "rows", "NLPD", "RMSE", "wall seconds", "CPU seconds", "splits")
    lines = [
        (
            *(shown(row.get(key)) for key in ("data", "method", "fraction", "rows")),
            *(with_sd(number(row, key), number(row, f"{key}_sd"), digits) for key, digits in scores.items()),
            shown(row.get("splits")),
        )
        for row in rows
    ]
    return [markdown_table(columns, lines)]


def run_tables(rows: Sequence[Row]) -> list[str]:
    """Figures 1 and 2: the largest N, first seed; all columns that the rows have."""
    run = largest_run(rows)
    n, seed = (shown(run[0].get(key)) for key in ("N", "seed"))
    seeds = ", ".join(shown(each) for each in distinct([row for row in rows if shown(row.get("N")) == n], "seed"))
    said = (
        f"The table shows seed {seed} at N = {n}; the figure medians over the seeds that there are at this N ({seeds}; "
        "the Matern kernel may have fewer), with bars from the least to the largest."
    )
    return [said, all_columns(run)]


def largest_run(rows: Sequence[Row]) -> list[Row]:
    """Rows of the first seed at the largest N."""
    largest = max((number(row, "N") or 0.0 for row in rows), default=0.0)
    some = [row for row in rows if (number(row, "N") or 0.0) == largest]
    return [row for row in some if row.get("seed") == some[0].get("seed")]


def score_tables(rows: Sequence[Row]) -> list[str]:
    """Rows that are scores; points and curves are in the figure."""
    scores = chosen_rows(rows, kind="scores")
    return [all_columns(scores, hidden=("kind",))] if scores else []


def row_cost_tables(rows: Sequence[Row]) -> list[str]:
    """One table; single rounds are in the files."""
    return [all_columns(rows, hidden=tuple(key for row in rows for key in row if key.startswith("exponent_round_")))]


def whole_table(rows: Sequence[Row]) -> list[str]:
    """All rows and columns."""
    return [all_columns(rows)]
