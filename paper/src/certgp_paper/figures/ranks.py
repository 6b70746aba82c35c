"""The paper's curve at growing rank: MGP and FGP of the paper, then MercerGP and FourierGP, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from certgp.plots.style import SMALL, new_figure
from certgp_paper.experiments.curve_problem import FOURIER, MERCER, VARIANTS
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.ranks import RANKS_SHOWN
from certgp_paper.figures.panels import draw_panel, models, shared_legend, title


def draw(rows: Sequence[Row]) -> Figure:
    """One line of panels per rank, one column per model."""
    found = [row for row in models(rows) if row["rank"] in RANKS_SHOWN]
    columns = [(variant, kind) for variant in VARIANTS for kind in (MERCER, FOURIER) if _chosen(found, variant, kind)]
    ranks = sorted({row["rank"] for row in found})
    figure = new_figure(height=0.6 + 1.25 * len(ranks))
    panels = figure.subplots(len(ranks), len(columns), sharex=True, sharey=True, squeeze=False)
    for line, rank in enumerate(ranks):
        for column, (variant, kind) in enumerate(columns):
            shown = [row for row in _chosen(found, variant, kind) if row["rank"] == rank]
            if shown:
                panel, bottom = panels[line, column], line == len(ranks) - 1
                draw_panel(panel, rows, shown)
                title(panel, ", ".join(shown[0]["model"].split(", ")[:2]), "x" if bottom else "", "")
                panel.tick_params(labelsize=SMALL - 1)
        panels[line, 0].set_ylabel("y", fontsize=SMALL)
    shared_legend(figure, list(panels.flat))
    return figure


def _chosen(rows: Sequence[Row], variant: str, kind: str) -> list[Row]:
    return [row for row in rows if (row["variant"], row["features"]) == (variant, kind)]
