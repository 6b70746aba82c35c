"""Figure 1: ranks against dimension on a log scale, for one curve the ranks that certificates promise, and ranks
against N by two theorems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from certgp.plots.style import BLACK, BLUE, GREEN, ORANGE, SKY, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row

# as in the paper: Gaussian blue, Matern green; Fourier solid, Mercer dashed. Markers tell them apart in grey print.
_LINES = {
    ("gaussian", "mercer"): ("Gaussian, Mercer", BLUE, "--", "o"),
    ("gaussian", "fourier"): ("Gaussian, Fourier", BLUE, "-", "s"),
    ("matern12", "eigendecomposition"): ("Matérn 1/2, eigendecomposition", GREEN, "--", "^"),
    ("matern12", "fourier"): ("Matérn 1/2, Fourier", GREEN, "-", "D"),
}
_PROMISES = {
    "a_priori_paper": ("theorem 3, paper (Chebyshev)", VERMILION, "v"),
    "a_priori_sharp": ("theorem 3, sharpened", ORANGE, "^"),
    "trace_paper": (r"trace certificate $t/2$", SKY, "D"),
    "trace_sharp": (r"trace, $\frac{1}{2}(t-\ln(1+t))$", GREEN, "s"),
    "reference": ("reference certificate R1", BLACK, "x"),
}


_THEOREMS = {
    "burt": ("Burt et al., k-DPP", VERMILION, "-", "s"),
    "theorem3": ("theorem 3, paper", BLUE, "--", "o"),
    "theorem3_sharp": ("theorem 3, sharpened", SKY, ":", "^"),
}
_FILLED = {("gaussian", 1): "none", ("gaussian", 2): "full", ("matern52", 1): "none", ("matern32", 1): "full"}
_RATE_TITLES = {"gaussian": "Gaussian (open: D = 1, full: 2)", "matern": "Matérn (open: 5/2, full: 3/2)"}


def draw(rows: Sequence[Row]) -> Figure:
    """The figure for the largest N there is; lines go through the medians over seeds, bars span them."""
    rates = [row for row in rows if row["method"] == "rates"]
    ranks = [row for row in rows if row["method"] != "rates"]
    figure = new_figure(height=6.6 if rates else 4.3)
    panels = figure.subplots(2 if rates else 1, 2, squeeze=False)
    if ranks:
        _rank_panels(panels[0], ranks)
    if rates:
        _rates(panels[1, 0], [row for row in rates if row["kernel"] == "gaussian"], "gaussian")
        _rates(panels[1, 1], [row for row in rates if row["kernel"] != "gaussian"], "matern")
    return figure


def _rank_panels(panels: Sequence[Axes], rows: Sequence[Row]) -> None:
    n = max(row["N"] for row in rows)
    shown = [row for row in rows if row["N"] == n]
    left, right = panels
    _ranks(left, shown, n)
    _promises(right, [row for row in shown if (row["kernel"], row["method"]) == ("gaussian", "mercer")])
    for panel in (left, right):
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.17))


def _rates(axes: Axes, rows: Sequence[Row], panel: str) -> None:
    """Ranks that each theorem asks for against N, for two kernels or dimensions."""
    for kind in dict.fromkeys((row["kernel"], row["D"]) for row in rows):
        for theorem, (label, colour, line, marker) in _THEOREMS.items():
            own = [row for row in rows if (row["kernel"], row["D"]) == kind and row[theorem] is not None]
            axes.plot(
                [row["rows"] for row in own],
                [row[theorem] for row in own],
                color=colour,
                ls=line,
                marker=marker,
                ms=3.5,
                lw=1.1,
                fillstyle=_FILLED[kind],
                label=label if _FILLED[kind] == "full" else "_",
            )
    axes.set_xscale("log")
    _log_ranks(axes)
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.2))
    tidy(axes, _RATE_TITLES[panel], "number of rows N", "rank for KL ≤ 1")


def _ranks(axes: Axes, rows: Sequence[Row], n: int) -> None:
    axes.axhline(n, color=BLACK, lw=1.0, label=f"full rank, N = {n:,}")
    last = max(row["D"] for row in rows)
    for curve, (label, colour, line, marker) in _LINES.items():
        own = [row for row in rows if (row["kernel"], row["method"]) == curve]
        if own:
            end = max(row["D"] for row in own)
            name = f"{label} ({_seeds(own)}{'' if end == last else f', D ≤ {end}'})"
            _curve(axes, _by_dimension(own, "rank"), {"color": colour, "ls": line, "marker": marker, "label": name})
    beyond = sorted({(row["D"], row["more_than"]) for row in rows if row["more_than"] is not None})
    if beyond:
        label = "Matérn 1/2, Fourier: more than 2 N"
        axes.plot(*zip(*beyond, strict=True), ls="", marker=r"$\uparrow$", ms=8, color=GREEN, label=label)
    _log_ranks(axes)
    tidy(axes, "lowest rank, KL ≤ N / 100 (median)", "dimension D", "rank r")


def _curve(axes: Axes, found: Mapping[int, Sequence[int]], look: Mapping[str, Any]) -> None:
    """Medians over seeds, with bars from the least to the largest."""
    middle = [_median(ranks) for ranks in found.values()]
    below = [m - min(ranks) for m, ranks in zip(middle, found.values(), strict=True)]
    above = [max(ranks) - m for m, ranks in zip(middle, found.values(), strict=True)]
    axes.errorbar(list(found), middle, (below, above), ms=4, lw=1.3, capsize=2, **look)


def _promises(axes: Axes, rows: Sequence[Row]) -> None:
    actual = _by_dimension(rows, "rank")
    axes.plot(
        list(actual),
        [_median(ranks) for ranks in actual.values()],
        color=BLUE,
        ls="--",
        marker="o",
        ms=4,
        lw=1.3,
        label=f"lowest rank ({_seeds(rows)})",
    )
    for key, (label, colour, marker) in _PROMISES.items():
        found = _by_dimension(rows, key)
        # side by side, so that equal ranks stay visible
        shift = 0.09 * (list(_PROMISES).index(key) - 2)
        axes.plot(
            [D + shift for D in found],
            [_median(ranks) for ranks in found.values()],
            ls="",
            marker=marker,
            ms=4.5,
            color=colour,
            label=label,
        )
    _log_ranks(axes)
    tidy(axes, "promised ranks, Mercer", "dimension D", "rank r")


def _by_dimension(rows: Sequence[Row], key: str) -> dict[int, list[int]]:
    """All ranks there are, by dimension."""
    dimensions = sorted({row["D"] for row in rows if row[key] is not None})
    return {D: [row[key] for row in rows if row["D"] == D and row[key] is not None] for D in dimensions}


def _seeds(rows: Sequence[Row]) -> str:
    """How many seeds a median is over."""
    seeds = len({row.get("seed") for row in rows})
    return f"{seeds} seeds" if seeds > 1 else "1 seed"


def _median(ranks: Sequence[int]) -> int:
    return sorted(ranks)[len(ranks) // 2]


def _log_ranks(axes: Axes) -> None:
    """A log scale with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rank, _: f"{rank:,.0f}"))
    axes.set_ylim(bottom=1.0)
    axes.grid(axis="y", color=BLACK, alpha=0.12, lw=0.5)
