"""Figure 2: KL against the rank, Fourier on the left, Mercer and eigendecomposition on the right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from certgp.plots.style import BLACK, BLUE, GREEN, SKY, SMALL, VERMILION, new_figure, tidy
from certgp_paper.experiments.experiment import Row

_KERNELS = {"gaussian": ("Gaussian", BLUE, "o"), "matern12": ("Matérn 1/2", GREEN, "^")}
_FLOOR = 1e-13  # nats
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200)


def draw(rows: Sequence[Row]) -> Figure:
    """The figure for the largest N there is."""
    n = max(row["N"] for row in rows)
    shown = [row for row in rows if row["N"] == n and row.get("seed", 0) == 0]
    figure = new_figure(height=4.4)
    left, right = figure.subplots(1, 2)
    for kernel, (label, colour, marker) in _KERNELS.items():
        own = [row for row in shown if row["kernel"] == kernel]
        _fourier(left, [row for row in own if row["method"] == "fourier"], label, colour, marker)
        _truncated(right, [row for row in own if row["method"] != "fourier"], label, colour, marker)
    tidy(left, f"Fourier features, N = {n:,}", "rank r", "KL(exact || low rank), nats")
    tidy(right, "Mercer, eigendecomposition", "rank r")
    for panel in (left, right):
        _log_scales(panel)
        panel.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.17))
    right.set_ylim(bottom=_FLOOR)
    return figure


def _log_scales(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(_TICKS, [str(rank) for rank in _TICKS])
    axes.minorticks_off()
    axes.grid(axis="y", color=BLACK, alpha=0.12, lw=0.5)


def _fourier(axes: Axes, rows: Sequence[Row], label: str, colour: str, marker: str) -> None:
    """Mean and spread over draws; the interval R1 of the first draw, and its true KL, which lies inside."""
    if not rows:
        return
    ranks, draws, first = _column(rows, "rank"), rows[0]["draws"], label == "Gaussian"
    axes.plot(
        ranks, _column(rows, "kl"), color=colour, marker=marker, ms=4, lw=1.4, label=f"{label}: mean of {draws} draws"
    )
    least, largest = _column(rows, "kl_least"), _column(rows, "kl_largest")
    axes.fill_between(ranks, least, largest, color=colour, alpha=0.18, lw=0, label=_once("least to largest", first))
    axes.plot(ranks, _column(rows, "kl_first"), color=colour, lw=0.9, ls=":", label=_once("one of the draws", first))
    low, high = _column(rows, "lower"), _column(rows, "upper")
    middle = [0.5 * (a + b) for a, b in zip(low, high, strict=True)]
    half = [0.5 * (b - a) for a, b in zip(low, high, strict=True)]
    name = _once("certificate R1 of that draw", first)
    axes.errorbar(ranks, middle, half, color=BLACK, ls="", marker="_", ms=5, capsize=2, lw=0.9, label=name)


def _truncated(axes: Axes, rows: Sequence[Row], label: str, colour: str, marker: str) -> None:
    """KL and the bounds above it; what is below the floor of double precision is not drawn."""
    visible = [row for row in rows if row["kl"] > _FLOOR]
    if not visible:
        return
    ranks = _column(visible, "rank")
    first = label == "Gaussian"
    axes.plot(ranks, _column(visible, "kl"), color=colour, marker=marker, ms=4, lw=1.4, label=f"{label}: KL")
    axes.plot(
        ranks,
        _column(visible, "trace_paper"),
        color=VERMILION,
        ls="--",
        lw=1.2,
        label=_once(r"paper's bound $t/2$", first),
    )
    axes.plot(
        ranks,
        _column(visible, "trace_sharp"),
        color=SKY,
        ls="-.",
        lw=1.4,
        label=_once(r"$\frac{1}{2}(t-\ln(1+t))$", first),
    )
    upper = [(row["rank"], row["upper"]) for row in visible if row["upper"] is not None]
    if upper:
        axes.plot(*zip(*upper, strict=True), ls="", marker="_", ms=8, color=BLACK, label="certificate R1, upper end")


def _once(label: str, first: bool) -> str:
    """A label for the first curve of its kind; matplotlib leaves out what begins with an underscore."""
    return label if first else "_"


def _column(rows: Sequence[Row], key: str) -> list[float]:
    return [row[key] for row in rows]
