"""How long passes take, measured on a few rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """Seconds for one row."""

    fold: float  # of the statistics
    evaluation: float  # of objective and gradient


def shortest(run: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs."""
    times = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)
