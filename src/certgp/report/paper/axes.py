"""Axes that several drawings of the paper's results share."""

from __future__ import annotations

from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter


def label_log_axis(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of each decade in plain numbers: readable over half a decade as well as over four."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
