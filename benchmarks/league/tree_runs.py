"""How a boosted model becomes a predictive distribution: constant noise, its own variance, or quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from league.distributions import ConstantNoise, Distribution, FewQuantiles, Normal, constant_noise, least_slope
from league.protocol import Job
from league.search import Learner, judge, refit, search

QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
LEAST_VARIANCE = 1e-8


def squared_error(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean((y - prediction) ** 2))


def pinball(level: float, y: np.ndarray, prediction: np.ndarray) -> float:
    error = y - prediction
    return float(np.mean(np.maximum(level * error, (level - 1.0) * error)))


def gaussian_loss(y: np.ndarray, moments: np.ndarray) -> float:
    return -float(np.mean(normal(moments).log_density(y)))


def normal(moments: np.ndarray) -> Normal:
    """From means and variances (n, 2)."""
    return Normal(moments[:, 0], np.sqrt(np.maximum(moments[:, 1], LEAST_VARIANCE)))


def run_point(learner: Learner, job: Job) -> tuple[Distribution, dict[str, object]]:
    """Squared error; the noise is that of residuals at held-out rows."""
    best, number = search(learner, job, job.seconds)
    scale, degrees = constant_noise(best.held.y - best.prediction)
    found = ConstantNoise(refit(learner, best, job).predict(job.X_test), scale, degrees)
    return found, {"candidates": number, "rounds": best.rounds, "degrees": degrees, **best.settings}


def run_gaussian(learner: Learner, job: Job) -> tuple[Distribution, dict[str, object]]:
    """Mean and variance from the model itself."""
    best, number = search(learner, job, job.seconds)
    found = normal(refit(learner, best, job).predict(job.X_test))
    return found, {"candidates": number, "rounds": best.rounds, **best.settings}


def run_quantiles(learner: Callable[[float], Learner], job: Job) -> tuple[Distribution, dict[str, object]]:
    """Half of the seconds search settings for the median; the other half finds rounds for each quantile with these."""
    best, number = search(learner(0.5), job, job.seconds / 2)
    share = job.seconds / 2 / len(QUANTILES)
    judged = [judge(learner(level), best.settings, job, share) for level in QUANTILES]
    slope = least_slope(QUANTILES, np.column_stack([each.prediction for each in judged]), best.held.y)
    models = [refit(learner(level), each, job) for level, each in zip(QUANTILES, judged, strict=True)]
    found = FewQuantiles(QUANTILES, np.column_stack([model.predict(job.X_test) for model in models]), slope)
    rounds = [each.rounds for each in judged]
    return found, {"candidates": number, "rounds": rounds, "least_slope": slope, **best.settings}
