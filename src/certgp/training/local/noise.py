"""Signal variance and noise from many rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from certgp.gp.conditionals import condition
from certgp.training.local.metric import NOISE_BOUNDS, Metric
from certgp.training.local.objective import TargetRows
from certgp.training.local.prior import SignalPrior

_GRID = 13


@torch.no_grad()
def profiled_loss(
    metric: Metric, data: TargetRows, ratio: float, prior: SignalPrior | None = None
) -> tuple[float, float]:
    """Mean loss at the noise ratio g and the best signal variance, and that variance: sf2 = q = mean e^2 / (v + g)
    without a prior, and 1/2 (mean log 2 pi sf2 (v + g) + q / sf2) with what the prior says of it otherwise.
    """
    points, own, y = metric(data.rows.X), torch.from_numpy(data.targets), data.rows.y
    noise = data.noise(ratio)
    found = condition(metric.kernel, points[own], points, y, data.neighbours, noise)
    d = found.variance + noise[data.targets]
    mean_square = max(float(np.mean(np.square(y[own].numpy() - found.mean) / d)), float(np.finfo(np.float64).tiny))
    by_shape, n = 0.5 * (float(np.mean(np.log(d))) + math.log(2.0 * math.pi)), len(own)
    if prior is None:
        return by_shape + 0.5 * (math.log(mean_square) + 1.0), mean_square
    log_signal = prior.best_log_signal(mean_square, n)
    signal = math.exp(log_signal)
    return by_shape + 0.5 * (log_signal + mean_square / signal) + prior.loss(log_signal)[0] / n, signal


def fit_noise(metric: Metric, profiled: Callable[[float], tuple[float, float]]) -> float:
    r"""Set sf2 and g = s2 / sf2 to their best values; the mean loss that is left.

    ``profiled`` gives the mean loss of many rows at a ratio g and the best sf2, and that sf2.

    Rows that contradict their neighbours are rare and decide the noise, so this takes many more rows than the metric
    does. With sf2 in closed form one number is left: a grid, because the loss may have several minima, then a search
    between the neighbouring points.
    """

    def loss(log_ratio: float) -> float:
        return profiled(math.exp(log_ratio))[0]

    grid = np.linspace(math.log(NOISE_BOUNDS[0]), math.log(NOISE_BOUNDS[1]), _GRID)
    values = [loss(at) for at in grid]
    low = int(np.argmin(values))
    ends = float(grid[max(low - 1, 0)]), float(grid[min(low + 1, _GRID - 1)])
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 0.02})
    ratio = math.exp(float(found.x) if found.fun <= values[low] else float(grid[low]))
    value, signal = profiled(ratio)
    metric.set_variances(signal, ratio)
    return value
