"""Are the ranks that the theorems promise moderate, and how near are they to those that suffice? Figure 1 has both."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from certgp_paper.claims.finding import FAILS, HOLDS, RATES, UNDECIDED, Claim, Finding, combine, not_run
from certgp_paper.claims.sample_means import FEWEST
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, chosen_rows, number, rows_of

_READINGS = {  # what a theorem speaks of
    "Mercer (Gaussian)": {"kernel": "gaussian", "method": "mercer"},
    "Mercer (Matern)": {"kernel": "matern12", "method": "eigendecomposition"},
    "random features": {"kernel": "gaussian", "method": "fourier"},
}


def _promised(row: Row) -> float | None:
    return number(row, "a_priori_paper")


def _is_moderate(row: Row) -> bool:
    promised, n = _promised(row), number(row, "N")
    return promised is not None and n is not None and promised < n


def _moderate(rows: Sequence[Row]) -> Finding:
    """One promise of N features or more, or none at all, refutes it."""
    if not any(_promised(row) is not None for row in rows):
        return not_run("figure1")
    below = [row for row in rows if _is_moderate(row)]
    ratios = [
        promised / rank for row in below if (promised := _promised(row)) is not None and (rank := number(row, "rank"))
    ]
    share = f"{len(below)} of {len(rows)} below N"
    least = min(value for row in rows if (value := _promised(row)) is not None)
    near, text = f"least {least:.0e}", f"{share}; the least promise is {least:.3g}"
    if ratios:
        near = f"{median(ratios):.1f} times the need"
        text += f"; those below N are {median(ratios):.1f} times the rank needed (median), {min(ratios):.1f} to "
        text += f"{max(ratios):.1f} times"
    needed = [rank / n for row in rows if (rank := number(row, "rank")) is not None and (n := number(row, "N"))]
    text += f"; needed are at most {max(needed):.0%} of N" if needed else ""
    enough = len({row.get("seed") for row in rows}) >= FEWEST
    verdict = FAILS if len(below) < len(rows) else HOLDS if enough else UNDECIDED
    return Finding(verdict, text, f"{share}, {near}")


def _moderate_ranks_suffice(results: Results) -> Finding:
    rows = rows_of(results, "figure1")
    found = {name: _moderate(chosen_rows(rows, **what)) for name, what in _READINGS.items()}
    return combine(found, "figure1", "theorem and kernel")


CLAIMS = (
    Claim(
        RATES,
        "By the theorems moderate ranks suffice for a KL below eps N",
        'introduction; abstract ("effectiveness of our theoretical bounds")',
        "figure1",
        "Every rank that a theorem promises in figure 1, with its constants, is below N; one exception refutes it. "
        "Each theorem and kernel is a reading. For Matern kernels the theorem leaves its constant open, and the "
        'promise rests on this library\'s bound of their eigenvalues. "Effective" has no number in the paper: how many '
        "times the rank that suffices was promised stands beside the verdict",
        _moderate_ranks_suffice,
        'Below N, for "moderate": N features always suffice',
    ),
)
