"""Drawings of the paper's tables and figures, one module each, from the rows that an experiment yields."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from certgp.plots.style import save_figure
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures import (
    curves,
    deep_table,
    electric,
    exact_gp,
    figure1,
    figure2,
    linear_table,
    predictive,
    ranks,
    row_cost,
    scaling,
    seeds,
    sensitivity,
)

_COLOURS = 128  # line drawings need no more, and version control keeps every PNG
_DRAWINGS = {
    "figure1": figure1.draw,
    "figure2": figure2.draw,
    "predictive": predictive.draw,
    "curves": curves.draw,
    "ranks": ranks.draw,
    "table-nlpd": linear_table.draw,
    "table-rmse": linear_table.draw,
    "seeds": seeds.draw,
    "scaling": scaling.draw,
    "row-cost": row_cost.draw,
    "exact-gp": exact_gp.draw,
    "table-deep": deep_table.draw,
    "sensitivity": sensitivity.draw,
    "electric": electric.draw,
}


def save_drawing(name: str, rows: Sequence[Row], folder: Path, quick: bool = False) -> Path:
    """Draw the rows of the experiment ``name`` into ``folder``/NAME.png."""
    figure, path = _DRAWINGS[name](rows), folder / f"{name}.png"
    if quick:
        figure.suptitle("quick version: small problems, nothing to compare with the paper", fontsize=8, color="#707070")
    save_figure(figure, path, colours=_COLOURS)
    return path
