"""The linear tables as curves over the rank: ours solid and filled, the paper's dashed and open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from certgp.report.style import BLACK, BLUE, GREEN, SMALL, VERMILION, new_figure, tidy

Row = Mapping[str, Any]
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
    "likelihood": "certgp, paper's likelihood",
    "paper": "paper's text, run here",
    "released": "released code's way, run here",
}
_PUBLISHED: dict[str, Any] = {"ls": "--", "marker": "o", "ms": 5, "mfc": "none", "lw": 0.8}
_COLUMNS = 3
_ROOM = 1.6  # ratio of two ranks whose labels do not touch in a third of the width


def draw(rows: Sequence[Row]) -> Figure:
    """One panel per data set; colour is the method, line and marker say whose figure it is."""
    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    columns = min(_COLUMNS, len(names))
    lines = math.ceil(len(names) / columns)
    figure = new_figure(height=1.1 + 2.0 * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    metric = str(rows[0]["metric"]).upper()
    for panel, name in zip(panels, names, strict=False):
        _panel(panel, [row for row in rows if row["data"] == name])
        tidy(panel, name, "rank", metric)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    figure.legend(
        handles=_legend(rows), loc="outside lower center", ncols=_COLUMNS, fontsize=SMALL, frameon=False, handlelength=3
    )
    return figure


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    ranks = sorted({int(row["rank"]) for row in rows})
    for method, colour in _COLOURS.items():
        mine = [row for row in rows if row["method"] == method]
        printed = {int(row["rank"]): float(row["paper_mean"]) for row in mine if row["paper_mean"] is not None}
        at = sorted(printed)
        axes.plot(at, [printed[rank] for rank in at], color=colour, **_PUBLISHED)
        for variant, look in _VARIANTS.items():
            points = sorted((int(row["rank"]), float(row["mean"])) for row in mine if row["variant"] == variant)
            axes.plot([rank for rank, _ in points], [value for _, value in points], color=colour, **look)
    axes.set_xscale("log")
    axes.set_xticks(ranks, _labels(ranks))
    axes.minorticks_off()


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    present = [variant for variant in _VARIANTS if any(row["variant"] == variant for row in rows)]
    methods = [Line2D([], [], color=colour, lw=2, label=method) for method, colour in _COLOURS.items()]
    ours = [Line2D([], [], color=BLACK, label=_LABELS[variant], **_VARIANTS[variant]) for variant in present]
    return [*methods, *ours, Line2D([], [], color=BLACK, label="printed in the paper", **_PUBLISHED)]


def _labels(ranks: Sequence[int]) -> list[str]:
    """Ranks as text; one that the next would run into is left out."""
    following = [*ranks[1:], None]
    return [
        str(rank) if after is None or after >= _ROOM * rank else ""
        for rank, after in zip(ranks, following, strict=True)
    ]
