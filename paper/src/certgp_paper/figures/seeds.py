"""Spread of NLPD over seeds on one split beside that over splits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from certgp.plots.style import BLUE, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row


def draw(rows: Sequence[Row]) -> Figure:
    """One panel, two bars for each row of the table."""
    figure = new_figure(2.8)
    axes = figure.subplots()
    places = np.arange(len(rows))
    axes.bar(places - 0.2, [row["sd_over_seeds"] for row in rows], 0.4, color=VERMILION, label="seeds, one split")
    axes.bar(places + 0.2, [row["sd_over_splits"] or 0.0 for row in rows], 0.4, color=BLUE, label="splits")
    names = [f"{row['data']} {row['method']} {row['rank']}" for row in rows]
    axes.set_xticks(places, names, rotation=70, fontsize=SMALL)
    tidy(axes, "Standard deviation of NLPD", "", "")
    axes.legend(fontsize=SMALL, frameon=False)
    return figure
