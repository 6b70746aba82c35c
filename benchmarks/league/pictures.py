"""Critical differences of average ranks, and average rank against CPU seconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, SMALL, VERMILION, new_figure, tidy
from league.ranking import Ranking, groups_alike

GREY = "#707070"
TICKS = [factor * 10.0**power for power in range(-2, 4) for factor in (1, 2, 5)]


def plot_ranks(rankings: Sequence[Ranking], ours: Collection[str]) -> Figure:
    """One panel per measure: average ranks in order, bars join those that Nemenyi's test cannot tell apart."""
    lines = len(rankings[0].contestants)
    figure = new_figure(height=len(rankings) * (0.9 + 0.17 * lines))
    for panel, ranking in zip(figure.subplots(len(rankings), 1, squeeze=False)[:, 0], rankings, strict=True):
        _draw_ranks(panel, ranking, ours)
    return figure


def _draw_ranks(panel: Axes, ranking: Ranking, ours: Collection[str]) -> None:
    average = ranking.average
    names, values = list(average), np.array(list(average.values()))
    places = np.arange(len(names))
    colours = [BLUE if name in ours else VERMILION for name in names]
    panel.hlines(places, 0.7, values, color=colours, lw=0.6, alpha=0.5)
    panel.scatter(values, places, color=colours, s=22, zorder=3)
    panel.set_yticks(places, names)
    for label, colour in zip(panel.get_yticklabels(), colours, strict=True):
        label.set_color(colour)
    groups = groups_alike(average, ranking.critical_difference)
    for number, group in enumerate(groups):
        x = len(names) + 0.6 + 0.35 * number
        panel.plot([x, x], [names.index(group[0]) - 0.2, names.index(group[-1]) + 0.2], color=BLACK, lw=2.2)
    panel.set_ylim(len(names) - 0.4, -0.8)
    panel.set_xlim(0.7, len(names) + 1.0 + 0.35 * max(len(groups), 1))
    panel.set_xticks(range(1, len(names) + 1, 2 if len(names) > 10 else 1))
    note = f"average rank; bars right join what is at most {ranking.critical_difference:.1f} apart"
    tidy(panel, f"{ranking.measure.upper()}, {len(ranking.data)} data sets", xlabel=note)


def plot_cost(ranking: Ranking, seconds: Mapping[str, float], ours: Collection[str]) -> Figure:
    """Average rank against CPU seconds; the line joins contestants that no other beats in both."""
    average = {name: value for name, value in ranking.average.items() if name in seconds}
    figure = new_figure(height=4.4)
    panel = figure.subplots()
    for name, value in average.items():
        colour = BLUE if name in ours else VERMILION
        panel.scatter(seconds[name], value, color=colour, s=26, zorder=3)
    front = best_for_cost(average, seconds)
    panel.plot([seconds[name] for name in front], [average[name] for name in front], color=GREY, lw=1.0, ls="--")
    panel.set_xscale("log")
    low, high = min(seconds[name] for name in average), max(seconds[name] for name in average)
    panel.set_xlim(low / 1.3, high * (high / low) ** 0.35 * 1.3)  # room for names right of the last points
    panel.set_xticks([x for x in TICKS if low / 1.3 <= x <= high * 1.3], minor=False)
    panel.set_xticks([], minor=True)
    panel.xaxis.set_major_formatter("{x:g}")
    _name_points(panel, average, seconds, ours)
    panel.invert_yaxis()
    panel.grid(color=BLACK, alpha=0.12, lw=0.5)
    tidy(
        panel,
        f"{ranking.measure.upper()} rank against cost; better is up, cheaper is left",
        xlabel="CPU seconds of fit and prediction, geometric mean over data sets",
        ylabel="average rank",
    )
    return figure


def _name_points(
    panel: Axes, average: Mapping[str, float], seconds: Mapping[str, float], ours: Collection[str]
) -> None:
    """Names beside their points, right or left, moved up or down until they cover neither a name nor a point. Thin
    lines lead from names that were moved to their points.
    """
    height = max(average.values()) - min(average.values()) or 1.0
    left, right = np.log10(panel.get_xlim())
    line, pad, per_letter = 0.045 * height, 0.016 * (right - left), 0.0095 * (right - left)
    points = {name: (np.log10(seconds[name]), value) for name, value in average.items()}
    placed = list[tuple[float, float, float]]()  # names: from, to, at which height

    def is_free(start: float, end: float, y: float) -> bool:
        names = any(abs(y - other) < line and start < last and first < end for first, last, other in placed)
        others = any(abs(y - at) < 0.7 * line and start - pad < x < end + pad for x, at in points.values())
        return left < start and not names and not others

    for name, (x, y) in sorted(points.items(), key=lambda each: each[1][1]):
        width, at = per_letter * len(name), 1.5 * pad
        sides = (x + at, x + at + width), (x - at - width, x - at)
        heights = (y + sign * 0.25 * step * line for step in count() for sign in (1, -1))
        (start, end), beside = next((side, h) for h in heights for side in sides if is_free(*side, h))
        placed.append((start, end, beside))
        on_right = start > x
        panel.annotate(
            name,
            (seconds[name], y),
            (10.0 ** (start if on_right else end), beside),
            fontsize=SMALL - 1,
            color=BLUE if name in ours else VERMILION,
            va="center",
            ha="left" if on_right else "right",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "relpos": (0.0 if on_right else 1.0, 0.5)}
            if abs(beside - y) > 0.5 * line
            else None,
        )


def best_for_cost(average: Mapping[str, float], seconds: Mapping[str, float]) -> list[str]:
    """Those that no other contestant is both cheaper and better than, cheapest first."""
    front: list[str] = []
    for name in sorted(average, key=lambda each: (seconds[each], average[each])):
        if not front or average[name] < average[front[-1]]:
            front.append(name)
    return front
