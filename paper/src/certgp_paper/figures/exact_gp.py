"""The exact GP on elevators: NLPD of each split beside the paper's mean."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, SMALL, new_figure, tidy
from certgp_paper.experiments.experiment import Row


def draw(rows: Sequence[Row]) -> Figure:
    """One panel."""
    figure = new_figure(2.6)
    axes = figure.subplots()
    splits, nlpd = [row["split"] for row in rows], [row["nlpd"] for row in rows]
    paper, sd = rows[0]["paper_nlpd"], rows[0]["paper_nlpd_sd"]
    axes.axhspan(paper - sd, paper + sd, color=BLACK, alpha=0.1, linewidth=0)
    axes.axhline(paper, color=BLACK, linestyle="--", linewidth=1.0, label=f"paper: {paper:.3f} ({sd:.3f})")
    axes.axhline(mean(nlpd), color=BLUE, linewidth=1.0, label=f"ours: {mean(nlpd):.3f}")
    axes.plot(splits, nlpd, "o", color=BLUE, markersize=4)
    axes.set_xticks(splits)
    tidy(axes, "elevators: exact GP", "split", "NLPD (smaller is better)")
    axes.legend(fontsize=SMALL, frameon=False)
    return figure
