"""To which values a column can be set, one after the other, to see what it does to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_CIRCLE = 13  # values along a period, its end included
_UNITS = {"season": ("month of the year", 1.0, 12.0), "time of day": ("hour of the day", 0.0, 24.0)}  # first, length
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, eq=False)
class Setting:
    """Values (g,) and the numbers (g, k) that some outputs of a column take there; without them it is one number, set
    along the values that rows have.
    """

    name: str
    outputs: tuple[int, ...] = (0,)  # of the column, k
    grid: Array | None = None
    numbers: Array | None = None
    labels: tuple[str, ...] = ()  # of the values, where they are no numbers


def set_levels(name: str, labels: Sequence[str], numbers: Array) -> Setting:
    """Names, and what all outputs of the column are there."""
    outputs = tuple(range(numbers.shape[1]))
    return Setting(name, outputs, np.arange(len(labels), dtype=np.float64), numbers, tuple(labels))


def set_circle(name: str, part: str, first: int) -> Setting:
    """Around a period: season, weekday or time of day, as sine and cosine from output ``first`` on."""
    phases = np.arange(7) / 7.0 if part == "weekday" else np.linspace(0.0, 1.0, _CIRCLE)
    numbers = np.stack([np.sin(2.0 * np.pi * phases), np.cos(2.0 * np.pi * phases)], 1)
    if part == "weekday":
        return Setting(f"{name}, weekday", (first, first + 1), np.arange(7.0), numbers, _DAYS)
    unit, begin, length = _UNITS[part]
    return Setting(f"{name}, {unit}", (first, first + 1), begin + length * phases, numbers)
