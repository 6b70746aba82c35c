"""The paper's curve: exact GP, MGP and FGP one below the other, the paper's models left and certgp's right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from certgp.plots.style import new_figure
from certgp_paper.experiments.curve_problem import EXACT, FOURIER, MERCER, OWN, PAPER, VARIANTS
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.panels import draw_panel, models, shared_legend, title

_COLUMNS = {PAPER: "paper's", OWN: "certgp's"}


def draw(rows: Sequence[Row]) -> Figure:
    """The exact GP is the same in both columns."""
    found = models(rows)
    kinds = [kind for kind in (EXACT, MERCER, FOURIER) if any(row["features"] == kind for row in found)]
    variants = [variant for variant in VARIANTS if any(row["variant"] == variant for row in found)] or [PAPER]
    figure = new_figure(height=0.6 + 1.7 * len(kinds))
    panels = figure.subplots(len(kinds), len(variants), sharex=True, sharey=True, squeeze=False)
    for line, kind in enumerate(kinds):
        for column, variant in enumerate(variants):
            shown = [row for row in found if row["features"] == kind and row["variant"] in (variant, None)]
            if shown:
                panel = panels[line, column]
                draw_panel(panel, rows, shown)
                bottom, left = kind == kinds[-1], column == 0
                title(panel, _heading(shown[0], variant), "x" if bottom else "", "y" if left else "")
    shared_legend(figure, list(panels.flat))
    return figure


def _heading(row: Row, variant: str) -> str:
    """Name and error, which is a mean over point sets, of which the panel shows one."""
    name = (
        row["model"] if row["features"] == EXACT else f"{_COLUMNS[variant]} {', '.join(row['model'].split(', ')[:2])}"
    )
    return f"{name}: mean RMSE {row['rmse']:.3f}"
