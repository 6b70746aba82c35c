"""Axes that several drawings of the paper's results share."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from certgp.plots.style import BLACK
from certgp_paper.experiments.experiment import Row


def label_log_axis(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of each decade in plain numbers: readable over half a decade as well as over four."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def mark_with_star(title: str, rows: Sequence[Row]) -> str:
    """The title, with a star where the data of some row are not the paper's own."""
    return f"{title} *" if _differs(rows) else title


def star_handle(rows: Sequence[Row]) -> list[Line2D]:
    """What the star means, for a legend; nothing where there is none."""
    star = Line2D([], [], color=BLACK, label="data differ from the paper's", marker="$*$", ms=5, ls="")
    return [star] if _differs(rows) else []


def _differs(rows: Sequence[Row]) -> bool:
    return any(row.get("note") for row in rows)
