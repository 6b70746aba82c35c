"""The linear tables as curves over the rank: ours solid and filled, the paper's dashed and open.

The paper's line is drawn in full, also where there is none of ours. A star marks data that differ from the paper's.
Values far above the others of their panel would flatten it: they are marked at its upper edge and stand in its corner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from certgp.plots.style import BLACK, BLUE, GREEN, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row
from certgp_paper.figures.axes import mark_with_star, star_handle

_COLOURS = {"SGPR": BLUE, "FGP": VERMILION, "MGP": GREEN}
# line and marker of each variant of ours
_VARIANTS: dict[str, dict[str, Any]] = {
    "certgp": {"ls": "-", "marker": "o", "ms": 4},
    "likelihood": {"ls": "-", "marker": "^", "ms": 4, "lw": 0.9},
    "paper": {"ls": "-.", "marker": "s", "ms": 3.5, "lw": 0.9},
    "released": {"ls": ":", "marker": "x", "ms": 4, "lw": 0.9},
}
_LABELS = {
    "certgp": "certgp, defaults",
    "likelihood": "certgp, low-rank likelihood",
    "paper": "paper's text, run here",
    "released": "released code's way, run here",
}
_PUBLISHED: dict[str, Any] = {"ls": "--", "marker": "o", "ms": 5, "mfc": "none", "lw": 0.8}
_COLUMNS = 3
_FENCE = 2.0  # interquartile ranges above the upper quartile, beyond which a value is clipped
_ROOM = 1.6  # ratio of two ranks whose labels do not touch in a third of the width


def draw(rows: Sequence[Row]) -> Figure:
    """One panel per data set; colour is the method, line and marker say whose figure it is."""
    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    columns = min(_COLUMNS, len(names))
    lines = math.ceil(len(names) / columns)
    figure = new_figure(height=1.1 + 2.0 * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    metric, clipped = str(rows[0]["metric"]).upper(), False
    for panel, name in zip(panels, names, strict=False):
        own = [row for row in rows if row["data"] == name]
        clipped |= _panel(panel, own)
        tidy(panel, mark_with_star(name, own), "rank", metric)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.legend(
        handles=_legend(rows, any_clipped=clipped),
        loc="outside lower center",
        ncols=_COLUMNS,
        fontsize=SMALL,
        frameon=False,
        handlelength=3,
    )
    return figure


def _panel(axes: Axes, rows: Sequence[Row]) -> bool:
    """Draw a data set; says whether some value is beyond the panel."""
    ranks = sorted({int(row["rank"]) for row in rows})
    curves = _curves(rows)
    limit = _upper_limit([value for _, _, points in curves for _, value in points])
    clipped: dict[int, list[tuple[float, str]]] = {}
    for colour, look, points in curves:
        axes.plot([rank for rank, _ in points], [value for _, value in points], color=colour, **look)
        for rank, value in points:
            if limit is not None and value > limit:
                clipped.setdefault(rank, []).append((value, colour))
    if limit is not None:
        axes.set_ylim(top=limit)
        _mark_clipped(axes, clipped, limit)
    axes.set_xscale("log")
    axes.set_xticks(ranks, _labels(ranks))
    axes.minorticks_off()
    return limit is not None


def _curves(rows: Sequence[Row]) -> list[tuple[str, dict[str, Any], list[tuple[int, float]]]]:
    """Colour, look and (rank, value) of each line: the paper's, then those of our variants."""
    curves = []
    for method, colour in _COLOURS.items():
        mine = [row for row in rows if row["method"] == method]
        printed = {int(row["rank"]): float(row["paper_mean"]) for row in mine if row["paper_mean"] is not None}
        curves.append((colour, _PUBLISHED, sorted(printed.items())))
        for variant, look in _VARIANTS.items():
            own = [row for row in mine if row["variant"] == variant and row["mean"] is not None]
            curves.append((colour, look, sorted((int(row["rank"]), float(row["mean"])) for row in own)))
    return curves


def _upper_limit(values: Sequence[float]) -> float | None:
    """The upper edge of a panel from which some values are far away; None where none is."""
    lower, upper = np.quantile(values, (0.25, 0.75)) if values else (0.0, 0.0)
    if lower == upper:
        return None  # no spread to measure a distance by
    fence = upper + _FENCE * (upper - lower)
    inside = [value for value in values if value <= fence]
    if len(inside) == len(values):
        return None
    return float(max(inside) + 0.12 * (max(inside) - min(inside)))


def _mark_clipped(axes: Axes, clipped: Mapping[int, Sequence[tuple[float, str]]], limit: float) -> None:
    """An arrow at the upper edge for each value beyond it, and the values in the corner."""
    for rank, found in clipped.items():
        for _, colour in found:
            axes.plot([rank], [limit], marker=6, ms=5, color=colour, clip_on=False, ls="")
    lines = [
        f"r = {rank}: {', '.join(f'{value:.2f}' for value, _ in sorted(clipped[rank]))}" for rank in sorted(clipped)
    ]
    text = "\n".join(lines)
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
    axes.text(1.0, 1.0, text, fontsize=SMALL - 2, transform=axes.transAxes, ha="right", va="top", bbox=behind)


def _legend(rows: Sequence[Row], any_clipped: bool) -> list[Line2D]:
    present = [variant for variant in _VARIANTS if any(row["variant"] == variant for row in rows)]
    clipped = Line2D([], [], color=BLACK, label="beyond the panel: see its corner", marker=6, ms=5, ls="")
    methods = [Line2D([], [], color=colour, lw=2, label=method) for method, colour in _COLOURS.items()]
    ours = [Line2D([], [], color=BLACK, label=_LABELS[variant], **_VARIANTS[variant]) for variant in present]
    printed = Line2D([], [], color=BLACK, label="printed in the paper", **_PUBLISHED)
    marks = [*([clipped] if any_clipped else []), *star_handle(rows)]
    return [*methods, *ours, printed, *marks]


def _labels(ranks: Sequence[int]) -> list[str]:
    """Ranks as text; one that the next would run into is left out."""
    following = [*ranks[1:], None]
    return [
        str(rank) if after is None or after >= _ROOM * rank else ""
        for rank, after in zip(ranks, following, strict=True)
    ]
