"""Errors of differences between two contestants' scores, from what their cells keep. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from league.scores import PARTS, Array


def part_sizes(rows: int) -> Array:
    """How many test rows are in each part; the same for all contestants, and rows are in random order."""
    return np.array([len(part) for part in np.array_split(np.arange(rows), min(PARTS, rows))], float)


def difference_error(measure: str, first: Sequence[float], second: Sequence[float], rows: int) -> float:
    """Standard error of the difference of two contestants' scores on the same test rows, from the sums of parts.

    With d_p the difference of the sums and n_p the rows of part p of P, and m the mean difference of a row, it is
    sqrt(P / (P - 1) sum_p (d_p - n_p m)^2) / n. RMSE is linearised: a row's e^2 counts as e^2 / (2 RMSE).
    """
    sums, sizes = [np.asarray(first, float), np.asarray(second, float)], part_sizes(rows)
    if len(sizes) < 2:
        return math.inf
    if measure == "rmse":
        sums = [each / max(2.0 * math.sqrt(each.sum() / rows), np.finfo(float).tiny) for each in sums]
    differences = sums[0] - sums[1]
    spread = differences - sizes * differences.sum() / rows
    return math.sqrt(len(sizes) / (len(sizes) - 1) * float(np.sum(spread**2))) / rows
