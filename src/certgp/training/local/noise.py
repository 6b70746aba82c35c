"""Signal variance and noise from many rows."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from certgp.gp.conditionals import condition
from certgp.training.local.metric import NOISE_BOUNDS, Metric
from certgp.training.local.objective import TargetRows

_GRID = 13


@torch.no_grad()
def fit_noise(metric: Metric, data: TargetRows) -> float:
    r"""Set sf2 and g = s2 / sf2 to their best values for these rows and neighbours; the mean loss that is left.

    Rows that contradict their neighbours are rare and decide the noise, so this takes many more rows than the metric
    does. sf2 = mean e^2 / (v + g) in closed form, which leaves one number: a grid, because the loss may have several
    minima, then a search between the neighbouring points.
    """
    kernel, points = metric.kernel, metric(data.rows.X)
    own = torch.from_numpy(data.targets)
    y = data.rows.y

    def best(log_ratio: float) -> tuple[float, float]:
        ratio = math.exp(log_ratio)
        found = condition(kernel, points[own], points, y, data.neighbours, ratio)
        d = found.variance + ratio
        signal = max(float(np.mean(np.square(y[own].numpy() - found.mean) / d)), float(np.finfo(np.float64).tiny))
        return 0.5 * float(np.mean(np.log(d))) + 0.5 * (math.log(2.0 * math.pi * signal) + 1.0), signal

    grid = np.linspace(math.log(NOISE_BOUNDS[0]), math.log(NOISE_BOUNDS[1]), _GRID)
    values = [best(at)[0] for at in grid]
    low = int(np.argmin(values))
    ends = float(grid[max(low - 1, 0)]), float(grid[min(low + 1, _GRID - 1)])
    found = minimize_scalar(lambda at: best(at)[0], bounds=ends, method="bounded", options={"xatol": 0.02})
    log_ratio = float(found.x) if found.fun <= values[low] else float(grid[low])
    value, signal = best(log_ratio)
    metric.set_variances(signal, math.exp(log_ratio))
    return value
