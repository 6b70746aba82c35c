"""How a boosted model becomes a predictive distribution: constant noise, its own variance, or quantiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from league.distributions import (
    Distribution,
    FewQuantiles,
    Normal,
    StudentNoise,
    constant_noise,
    least_slope,
    likeliest_guard,
)
from league.protocol import Job
from league.search import FOLDS, Judged, Learner, judge, refit, search

QUANTILES = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
LEAST_VARIANCE = 1e-8
FEWER_FOLDS = 2


def squared_error(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean((y - prediction) ** 2))


def pinball(level: float, y: np.ndarray, prediction: np.ndarray) -> float:
    error = y - prediction
    return float(np.mean(np.maximum(level * error, (level - 1.0) * error)))


def gaussian_loss(y: np.ndarray, moments: np.ndarray) -> float:
    """As it is scored: with the guard that suits these rows."""
    found = normal(moments)
    return -float(np.mean(likeliest_guard(found, y)(found).log_density(y)))


def normal(moments: np.ndarray) -> Normal:
    """From means and variances (n, 2)."""
    return Normal(moments[:, 0], np.sqrt(np.maximum(moments[:, 1], LEAST_VARIANCE)))


def run_point(learner: Learner, job: Job) -> tuple[Distribution, dict[str, object]]:
    """Squared error; the noise is that of residuals at held-out rows."""
    best, number = search(learner, job, job.seconds)
    scale, degrees = constant_noise(best.held.y - best.prediction)
    found = StudentNoise(refit(learner, best, job).predict(job.X_test), scale, degrees)
    return found, {"degrees": degrees, **describe(best, number)}


def run_gaussian(learner: Learner, job: Job, most_folds: int = FOLDS) -> tuple[Distribution, dict[str, object]]:
    """Mean and variance from the model itself; how far the variance is believed is decided on held-out rows."""
    best, number = search(learner, job, job.seconds, most_folds)
    guard = likeliest_guard(normal(best.prediction), best.held.y)
    found = guard(normal(refit(learner, best, job).predict(job.X_test)))
    return found, {**asdict(guard), **describe(best, number)}


def run_quantiles(learner: Callable[[float], Learner], job: Job) -> tuple[Distribution, dict[str, object]]:
    """Half of the seconds search settings for the median; the other half finds rounds for each quantile with these.

    Two of the five folds judge: seven models must do with the seconds of one.
    """
    best, number = search(learner(0.5), job, job.seconds / 2, FEWER_FOLDS)
    share = job.seconds / 2 / len(QUANTILES)
    judged = [judge(learner(level), best.settings, job, share, FEWER_FOLDS) for level in QUANTILES]
    slope = least_slope(QUANTILES, np.column_stack([each.prediction for each in judged]), best.held.y)
    models = [refit(learner(level), each, job) for level, each in zip(QUANTILES, judged, strict=True)]
    found = FewQuantiles(QUANTILES, np.column_stack([model.predict(job.X_test) for model in models]), slope)
    of_levels = {"rounds": [each.rounds for each in judged], "was_cut": any(each.was_cut for each in judged)}
    return found, {"least_slope": slope, **describe(best, number), **of_levels}


def describe(best: Judged, number: int) -> dict[str, object]:
    """What a search found."""
    return {"candidates": number, "rounds": best.rounds, "was_cut": best.was_cut, **best.settings}
