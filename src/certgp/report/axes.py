"""Axes of charts: where a value is drawn, and which values are written beside the line."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """Maps values between ``low`` and ``high`` to positions between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    label: str = ""
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; those beyond the ends are drawn at the ends."""
        low, high = self.low, self.high  # in either order
        at = min(max(value, min(low, high)), max(low, high))
        share = (at - low) / (high - low) if not self.log else math.log(at / low) / math.log(high / low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values inside the ends."""
        return _log_ticks(self.low, self.high, most) if self.log else _linear_ticks(self.low, self.high, most)


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1.0, 2.0, 5.0, 10.0) if factor * unit >= raw * (1.0 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + i) * step, 12) + 0.0 for i in range(count)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    if len(decades) >= 2:
        every = max(1, math.ceil(len(decades) / most))
        return [10.0**k for k in decades][::every]
    found = [factor * 10.0**k for k in range(math.floor(math.log10(low)), decades.stop + 1) for factor in (1, 2, 5)]
    return [value for value in found if low <= value <= high]


def tick_label(value: float) -> str:
    """A short number: 20k rather than 20000."""
    if value == 0.0:
        return "0"
    if abs(value) >= 1e4 and value % 1e3 == 0.0 and abs(value) < 1e6:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}"


def ends(*arrays: Array, margin: float = 0.04) -> tuple[float, float]:
    """The range of all values, a little wider, and never empty."""
    values = np.concatenate([np.ravel(each) for each in arrays])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = margin * (high - low) if high > low else 0.5 * abs(high) or 0.5
    return low - room, high + room
