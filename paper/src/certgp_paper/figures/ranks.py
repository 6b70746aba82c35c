"""The paper's curve at growing rank: the Mercer GP on the left, the Fourier GP on the right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from certgp.plots.style import new_figure
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.panels import draw_panel, models, shared_legend, title


def draw(rows: Sequence[Row]) -> Figure:
    """One line of panels per rank, one column per kind of features."""
    found = models(rows)
    ranks, kinds = sorted({row["rank"] for row in found}), list(dict.fromkeys(row["features"] for row in found))
    figure = new_figure(height=0.6 + 1.25 * len(ranks))
    panels = figure.subplots(len(ranks), len(kinds), sharex=True, sharey=True, squeeze=False)
    for row in found:
        line, column = ranks.index(row["rank"]), kinds.index(row["features"])
        panel = panels[line, column]
        draw_panel(panel, rows, row["model"])
        bottom, first = line == len(ranks) - 1, column == 0
        title(panel, f"{row['model']}: RMSE {row['rmse_inputs']:.2f}", "x" if bottom else "", "y" if first else "")
    shared_legend(figure, panels[0, 0])
    return figure
