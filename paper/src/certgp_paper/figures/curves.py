"""The paper's curve by the exact, the Mercer and the Fourier GP, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from certgp.plots.style import new_figure
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.panels import draw_panel, models, shared_legend, title


def draw(rows: Sequence[Row]) -> Figure:
    """One panel per model."""
    found = models(rows)
    figure = new_figure(height=0.6 + 1.7 * len(found))
    panels = figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for panel, row in zip(panels, found, strict=True):
        draw_panel(panel, rows, row["model"])
        text = f"{row['model']}: RMSE {row['rmse_inputs']:.3f} for x like the data"
        title(panel, text, "x" if panel is panels[-1] else "", "y")
    shared_legend(figure, panels[0])
    return figure
