"""The paper's one-dimensional example at growing rank.  [paper, appendix, "Curve learning", second figure]

Five lines of panels. The paper's source does not print their ranks; its text speaks of r = 4 ("performs well with high
confidence even with r = 4") and r = 24 ("after r = 24 learns the true function accurately") for the Fourier GP. These
two, two between and 34 as in the first figure are shown, for both models.
"""

from __future__ import annotations

from collections.abc import Sequence

from certgp.estimators import GPRegressor
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.curve_problem import fit_curves, fourier_gp, mercer_gp
from certgp_paper.experiments.curves import curve_rows, curve_values
from certgp_paper.experiments.experiment import Experiment, Row

RANKS_SHOWN = (4, 10, 16, 24, 34)


def _cells(quick: bool) -> list[Cell]:
    """A cell per model and rank; the quick protocol has two of the ranks."""
    ranks = (4, 24) if quick else RANKS_SHOWN
    return [
        Cell("ranks", {"features": features, "rank": rank, "points": 25, "seed": 0})
        for rank in ranks
        for features in ("Mercer", "Fourier")
    ]


def _compute(settings: Settings) -> Values:
    features = str(settings["features"])
    rank, points, seed = (whole_number(settings, key) for key in ("rank", "points", "seed"))
    model: GPRegressor = mercer_gp(rank, seed) if features == "Mercer" else fourier_gp(rank, seed)
    return curve_values(fit_curves({f"{features} GP, r = {rank}": model}, points, 0.0, seed))


def _rows(finished: Sequence[Finished]) -> list[Row]:
    """Scores of all models, the points once, then all answers."""
    rows = [_add_labels(cell, row) for cell in finished for row in curve_rows(cell)]
    points = [row for row in rows if row["kind"] == "point"]
    once = points[: len(finished[0]["x"])] if finished else []
    return [
        *(row for row in rows if row["kind"] == "scores"),
        *once,
        *(row for row in rows if row["kind"] == "curve"),
    ]


def _add_labels(cell: Finished, row: Row) -> Row:
    if row["kind"] == "point":
        return row
    return {"kind": row["kind"], "features": cell["features"], "rank": cell["rank"], **row}


RANKS = Experiment(
    "ranks",
    "Appendix: the curve from 25 points by the Mercer GP and the Fourier GP at growing rank",
    _cells,
    _compute,
    _rows,
)
