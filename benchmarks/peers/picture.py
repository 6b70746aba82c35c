"""NLPD against seconds of training: peers dashed, certgp solid."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    SMALL,
    VERMILION,
    new_figure,
    tidy,
)
from peers.comparison import Run

GREY = "#707070"
MODEL_COLOURS = {
    "mercer": BLUE,
    "sparse": GREEN,
    "fourier": SKY,
    "auto": BLACK,
    "local": "#B8860B",
    "deep-mercer": "#8C6BB1",
    "deep-fourier": "#525252",
}
PEER_COLOURS = {
    "gpflow-sgpr": VERMILION,
    "gpytorch-sgpr": ORANGE,
    "gpytorch-svgp": PURPLE,
    "gpytorch-svgp-natural": GREY,
    "gpboost-vecchia": "#A0522D",
    "gpboost-vif": "#CD853F",
    "sklearn-nystroem": GREY,
}
MARKERS = dict(zip((*MODEL_COLOURS, *PEER_COLOURS), "os^D<HhXvP*>pd", strict=True))


def plot_runs(runs: Sequence[Run]) -> Figure:
    """One panel per data set and rank, of its first split and round; a marker shows where a run ended."""
    first: dict[tuple[str, int], dict[str, Run]] = {}
    for run in runs:
        first.setdefault((run.data, run.rank), {}).setdefault(run.contestant, run)
    figure = new_figure(height=0.8 + 2.8 * len(first))
    panels = figure.subplots(len(first), 1, squeeze=False)[:, 0]
    handles = {}
    for panel, ((data, rank), group) in zip(panels, first.items(), strict=True):
        for run in group.values():
            _draw(panel, run)
        _limit(panel, list(group.values()))
        tidy(panel, f"{data}, rank {rank}", ylabel="NLPD of test rows")
        handles |= {line.get_label(): line for line in panel.get_lines()}
    panels[-1].set_xlabel("seconds of training", fontsize=SMALL + 1)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _draw(panel: Axes, run: Run) -> None:
    kind = run.contestant.partition(":")[0]
    colours = PEER_COLOURS if run.is_peer else MODEL_COLOURS
    panel.plot(
        [point.seconds for point in run.trace],
        [point.nlpd for point in run.trace],
        color=colours[kind],
        lw=1.2 if run.is_peer else 1.8,
        ls="-" if not run.is_peer else "--" if len(run.trace) > 1 else "none",
        marker=MARKERS[kind],
        markevery=[-1],
        ms=7,
        label=run.contestant if run.is_peer else f"certgp {run.contestant}",
    )


def _limit(panel: Axes, runs: Sequence[Run]) -> None:
    """Room for the ends of all runs; the first points, far worse, may leave the picture."""
    ends, lowest = [run.final.nlpd for run in runs], min(point.nlpd for run in runs for point in run.trace)
    height = max(max(ends) - lowest, 0.02)
    panel.set_ylim(lowest - 0.1 * height, max(ends) + 0.6 * height)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.grid(color=BLACK, alpha=0.12, lw=0.5)
