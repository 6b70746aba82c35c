"""Scores of predictive distributions on test rows. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.distributions import MIDPOINTS

Array = NDArray[np.float64]
METRICS = ("nlpd", "crps", "rmse")  # contestants are ranked by these; lower is better
PARTS, DIGITS = 30, 6  # of the test rows, whose sums a cell keeps; digits of these
LOWER, UPPER = (int(np.argmin(np.abs(MIDPOINTS - level))) for level in (0.025, 0.975))


def crps_of_quantiles(y: Array, quantiles: Array) -> Array:
    """CRPS(F, y) = 2 int_0^1 pinball_p(y - F^-1(p)) dp, by the midpoint rule over MIDPOINTS: (n,)."""
    error = y[:, None] - quantiles
    return 2.0 * np.mean(np.maximum(MIDPOINTS * error, (MIDPOINTS - 1.0) * error), axis=1)


def score(y: Array, mean: Array, log_density: Array, quantiles: Array) -> dict[str, float]:
    """Means over the rows; standard errors of NLPD and CRPS are those of a mean over independent rows."""
    crps = crps_of_quantiles(y, quantiles)
    lower, upper = quantiles[:, LOWER], quantiles[:, UPPER]
    return {
        "nlpd": -float(np.mean(log_density)),
        "nlpd_se": _standard_error(log_density),
        "crps": float(np.mean(crps)),
        "crps_se": _standard_error(crps),
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "coverage95": float(np.mean((y >= lower) & (y <= upper))),
        "width95": float(np.mean(upper - lower)),
    }


def part_sizes(rows: int) -> Array:
    """How many test rows are in each part; the same for all contestants, and rows are in random order."""
    return np.array([len(part) for part in np.array_split(np.arange(rows), min(PARTS, rows))], float)


def part_sums(y: Array, mean: Array, log_density: Array, quantiles: Array) -> dict[str, list[float]]:
    """Sums over each part of what NLPD, CRPS and squared RMSE average: enough for errors of paired differences."""
    each = {"nlpd": -log_density, "crps": crps_of_quantiles(y, quantiles), "rmse": (y - mean) ** 2}
    return {
        name: [float(f"{np.sum(part):.{DIGITS}g}") for part in np.array_split(values, min(PARTS, len(y)))]
        for name, values in each.items()
    }


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


def score_all_and_new(
    y: Array, mean: Array, log_density: Array, quantiles: Array, repeated: NDArray[np.bool_]
) -> dict[str, float]:
    """Scores of all rows and, as ``new_...``, of those whose inputs do not occur among the training rows."""
    found = score(y, mean, log_density, quantiles)
    new = ~repeated
    if repeated.any() and new.any():
        rest = score(y[new], mean[new], log_density[new], quantiles[new])
        found |= {f"new_{name}": value for name, value in rest.items()}
    return found


def are_numbers(found: dict[str, float]) -> bool:
    return all(math.isfinite(value) for value in found.values())


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
