"""What claims about the one-dimensional example share: point sets, and how certgp's models stand beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from certgp_paper.claims.finding import Finding, labelled, not_run
from certgp_paper.claims.sample_means import RULE
from certgp_paper.experiments.curve_problem import DTC, LOW_RANK, OWN, PAPER, START_LENGTH_SCALE
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, chosen_rows, number, rows_of
from certgp_paper.experiments.sample_means import sample_mean

SIMILAR = 0.1  # relative difference of errors, and of curves in standard deviations of the exact mean
VARIANCES = {DTC: "DTC variance", LOW_RANK: "low-rank variance"}
WHERE = "appendix, curve learning"
OVER_DRAWS = f"on average over draws of frequencies ({RULE})"
START = (
    f". All models start from the length-scale {START_LENGTH_SCALE:g}, from which they see the cosine; from 1, or by "
    "Adam, all of them may lose it (record 0031); there the exact GP alone is judged"
)

Judge = Callable[[Results], Finding]
OfVariant = Callable[[Results, str], Finding | None]


def sets_of(results: Results, name: str, **conditions: object) -> list[Row]:
    """Rows of single point sets, in the order of the sets."""
    return sorted(chosen_rows(rows_of(results, name), kind="set", **conditions), key=lambda row: row["seed"])


def values_of(rows: Sequence[Row], key: str) -> list[float]:
    """A column, where it has numbers."""
    return [value for row in rows if (value := number(row, key)) is not None]


def against(rows: Sequence[Row], key: str, other: str, factor: float = 1.0) -> list[float]:
    """key - factor * other, for each point set."""
    return [a - factor * b for a, b in zip(values_of(rows, key), values_of(rows, other), strict=True)]


def mean_text(values: Sequence[float], digits: int = 3) -> str:
    """0.245 ± 0.050, with its 95 % interval."""
    return f"{mean(values):.{digits}f} ± {sample_mean(values).half_width:.{digits}f}"


def judged(name: str, one: OfVariant) -> Judge:
    """A claim judged on the paper's models, with certgp's beside it."""

    def judge(results: Results) -> Finding:
        found = one(results, PAPER)
        return not_run(name) if found is None else beside(found, one(results, OWN))

    return judge


def beside(found: Finding, own: Finding | None) -> Finding:
    """What certgp's models do stands beside it, in parts that say so, and decides nothing."""
    text = labelled("`paper`", found.evidence)
    if own is not None:
        text += f"; `certgp`, which decides nothing: {own.in_words}; {labelled('`certgp`', own.evidence)}"
    return Finding(found.verdict, text, found.short, found.readings, found.depends_on)
