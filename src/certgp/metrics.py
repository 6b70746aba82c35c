"""Scorers for ``cross_val_score`` and searches: they judge a whole predictive distribution, not its mean alone.

Each is called as ``scorer(estimator, X, y)`` with a fitted estimator of certgp, or a pipeline that ends in one. As
scikit-learn wants it, greater is better, so losses come with a minus; ``Coverage`` is a share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.checks import check_fraction
from certgp.errors import InvalidInputError
from certgp.estimators import GPRegressor
from certgp.estimators.table_gp import TableGP
from certgp.gp import Mixture
from certgp.gp.log_mixture import LogMixture
from certgp.models.outputs import OutputMixtures

Array = NDArray[np.float64]

__all__ = ["Coverage", "neg_crps", "neg_nlpd"]


def neg_nlpd(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Mean log predictive density of y: the larger, the better; in nats, and only differences count."""
    return _mean_score(estimator, X, y, lambda found, target: found.log_density(target))


def neg_crps(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Minus the mean continuous ranked probability score, in the units of y: an absolute error that counts uncertainty,
    and less hard on outliers than ``neg_nlpd``.
    """
    return _mean_score(estimator, X, y, lambda found, target: -found.crps(target))


@dataclass(frozen=True)
class Coverage:
    """Share of y inside central intervals: close to ``level`` where they are honest. To look at, not to maximise."""

    level: float = 0.95

    def __call__(self, estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
        """The share on these rows."""
        level = check_fraction("level", self.level)
        return _mean_score(estimator, X, y, lambda found, target: np.abs(2.0 * found.cdf(target) - 1.0) <= level)


def _mean_score(
    estimator: Any, X: ArrayLike, y: ArrayLike, score: Callable[[Mixture | LogMixture, Array], NDArray[Any]]
) -> float:
    """Mean over rows, then over outputs; rows without the target of an output are left out."""
    model, rows = _last_step(estimator, X)
    found, target = model.distribution(rows), np.asarray(y, dtype=np.float64)
    if not isinstance(found, OutputMixtures):
        return float(np.mean(score(found, target.reshape(-1))))
    means = []
    for each, own in zip(found.mixtures, target.T, strict=True):
        known = ~np.isnan(own)
        means.append(np.mean(score(each, np.where(known, own, 1.0))[known]))
    return float(np.mean(means))


def _last_step(estimator: Any, X: Any) -> tuple[GPRegressor | TableGP, Any]:
    """An estimator of certgp with its own inputs, also at the end of a pipeline."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return _last_step(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    if not isinstance(estimator, (GPRegressor, TableGP)):
        raise InvalidInputError(
            f"this scorer needs an estimator of certgp or a pipeline that ends in one, found {type(estimator).__name__}"
        )
    return estimator, X
