"""Scorers for ``cross_val_score`` and searches: they judge a whole predictive distribution, not its mean alone.

Each is called as ``scorer(estimator, X, y)`` with a fitted estimator of certgp, or a pipeline that ends in one. As
scikit-learn wants it, greater is better, so losses come with a minus; ``Coverage`` is a share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.checks import check_fraction
from certgp.errors import InvalidInputError
from certgp.estimators import GPRegressor
from certgp.gp import Mixture

Array = NDArray[np.float64]

__all__ = ["Coverage", "neg_crps", "neg_nlpd"]


def neg_nlpd(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Mean log predictive density of y: the larger, the better; in nats, and only differences count."""
    return _mean(found.log_density(target) for found, target in _predicted(estimator, X, y))


def neg_crps(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Minus the mean continuous ranked probability score, in the units of y: an absolute error that counts uncertainty,
    and less hard on outliers than ``neg_nlpd``.
    """
    return _mean(-found.crps(target) for found, target in _predicted(estimator, X, y))


@dataclass(frozen=True)
class Coverage:
    """Share of y inside central intervals: close to ``level`` where they are honest. To look at, not to maximise."""

    level: float = 0.95

    def __call__(self, estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
        """The share on these rows."""
        level = check_fraction("level", self.level)
        return _mean(np.abs(2.0 * found.cdf(target) - 1.0) <= level for found, target in _predicted(estimator, X, y))


def _predicted(estimator: Any, X: ArrayLike, y: ArrayLike) -> Iterator[tuple[Mixture, Array]]:
    """The predictive distribution and the target of each output, rows without that target left out."""
    model, rows = _last_step(estimator, X)
    target = np.asarray(y, dtype=np.float64)
    if model.outputs_ is None:
        yield model.distribution(rows), target.reshape(-1)
        return
    for j, part in enumerate(model.outputs_):
        known = ~np.isnan(target[:, j])
        found = part.distribution(rows)
        yield Mixture(found.means[:, known], found.variances[:, known], found.weights), target[known, j]


def _last_step(estimator: Any, X: Any) -> tuple[GPRegressor, Any]:
    """An estimator of certgp with its own inputs, also at the end of a pipeline."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return _last_step(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    if not isinstance(estimator, GPRegressor):
        raise InvalidInputError(
            f"this scorer needs an estimator of certgp or a pipeline that ends in one, found {type(estimator).__name__}"
        )
    return estimator, X


def _mean(parts: Iterator[NDArray[Any]]) -> float:
    """Mean over rows, then over outputs."""
    return float(np.mean([np.mean(part) for part in parts]))
