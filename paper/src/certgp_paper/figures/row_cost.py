"""The exponent of N in the time of an epoch, for each width and method."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, new_figure, tidy
from certgp_paper.experiments.experiment import Row


def draw(rows: Sequence[Row]) -> Figure:
    """One panel: rounds as dots, means with their 95 % intervals."""
    figure = new_figure(2.8)
    axes = figure.subplots()
    axes.axhline(1.0, color=BLACK, linestyle="--", linewidth=1.0)
    for place, row in enumerate(rows):
        values = [value for key, value in row.items() if key.startswith("exponent_round_")]
        axes.plot([place] * len(values), values, ".", color=BLUE, alpha=0.4, markersize=5)
        axes.errorbar(place + 0.15, row["exponent"], row["exponent_half_width"], fmt="o", color=BLUE, markersize=4)
    axes.set_xticks(range(len(rows)), [f"{row['method']}\nD = {row['D']}" for row in rows])
    title = f"rank {rows[0]['rank']}: time of an epoch, N = {rows[0]['N']:,} and {rows[0]['N_more']:,}"
    tidy(axes, title, "", "exponent of N")
    return figure
