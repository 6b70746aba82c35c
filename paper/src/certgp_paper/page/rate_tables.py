"""Tables of figure 1: ranks and promises of one run, and ranks by two theorems against N."""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import chosen_rows
from certgp_paper.page.markdown import markdown_table, shown
from certgp_paper.page.tables import run_tables

_COLUMNS = {
    "kernel": "kernel",
    "D": "dimensions",
    "rows": "rows N",
    "theorem3": "theorem 3, paper",
    "theorem3_sharp": "theorem 3, sharpened",
    "burt": "Burt et al., k-DPP",
}


def figure1_tables(rows: Sequence[Row]) -> list[str]:
    """Those of the largest run, then the comparison with Burt et al."""
    rates = chosen_rows(rows, method="rates")
    ranks = [row for row in rows if row.get("method") != "rates"]
    parts = run_tables(ranks) if ranks else []
    if rates:
        lines = [tuple(shown(row.get(key)) for key in _COLUMNS) for row in rates]
        parts += [
            "Rank that a theorem asks for so that KL is at most 1 nat with probability .95, one figure for each N: "
            "theorem 3 bounds the divergence of the prior on the data, Burt et al. (2019) that of the variational "
            "posterior, for inducing points drawn by a k-DPP. Nothing stands where more than 1,000 are needed.",
            markdown_table(tuple(_COLUMNS.values()), lines),
        ]
    return parts
