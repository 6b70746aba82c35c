"""Scores of predictive distributions on test rows. NumPy only."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from league.distributions import MIDPOINTS

Array = NDArray[np.float64]
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


def part_sums(y: Array, mean: Array, log_density: Array, quantiles: Array) -> dict[str, list[float]]:
    """Sums over each part of what NLPD, CRPS and squared RMSE average: enough for errors of paired differences."""
    each = {"nlpd": -log_density, "crps": crps_of_quantiles(y, quantiles), "rmse": (y - mean) ** 2}
    return {
        name: [float(f"{np.sum(part):.{DIGITS}g}") for part in np.array_split(values, min(PARTS, len(y)))]
        for name, values in each.items()
    }


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
