"""How a fit went."""

from __future__ import annotations

from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, GREEN, new_figure, tidy
from certgp.training import History


def plot_history(history: History) -> Figure:
    """Objective per row against iterations and against seconds: lower is better."""
    figure = new_figure(height=2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    iterations = [record.iteration for record in history.iterations]
    left.plot(iterations, history.values, color=BLUE, marker="o", ms=3, lw=1.2)
    tidy(left, "by iteration", "iteration", "objective per row")
    right.plot(history.seconds, history.values, color=GREEN, marker="o", ms=3, lw=1.2)
    tidy(right, "by time", "seconds")
    for panel in (left, right):
        panel.grid(color=BLACK, alpha=0.12, lw=0.5)
    return figure
