"""What a model must beat: a constant, a straight line and gradient boosting, each with a Gaussian interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certgp.data import Rows
from certgp.report import Predicted

Array = NDArray[np.float64]
MOST_ROWS = 50_000  # that one of them learns from
_HELD_BACK = 5  # one row in so many tells how far it is off


def predict_simple_models(train: Rows, X: Array, y: Array, seed: int = 0) -> tuple[tuple[Predicted, ...], int]:
    """Their predictions at X (n, D) beside y (n,), and how many of the training rows they learned from.

    The standard deviation of each is that of its errors on a fifth of the training rows that it had not seen; then it
    learns from all of them. Weights of rows are not used.
    """
    rng = np.random.default_rng(seed)
    picked = rng.permutation(train.n_rows)[:MOST_ROWS]
    A, b = _shuffled(train, np.sort(picked), rng)
    found = [_predict(name, model, A, b, X, y) for name, model in _models(seed).items()]
    return tuple(found), len(b)


def _shuffled(rows: Rows, positions: NDArray[np.int64], rng: np.random.Generator) -> tuple[Array, Array]:
    """X and y at these positions in random order; what was read in theirs does not outlive this call."""
    inputs, target = rows.take(positions)
    assert target is not None
    order = rng.permutation(len(target))
    return np.asarray(inputs, dtype=np.float64)[order], np.asarray(target, dtype=np.float64)[order]


def _models(seed: int) -> dict[str, RegressorMixin]:
    return {
        "constant": DummyRegressor(),
        "linear": make_pipeline(StandardScaler(), LinearRegression()),
        "gradient boosting": HistGradientBoostingRegressor(random_state=seed),
    }


def _predict(name: str, model: RegressorMixin, A: Array, b: Array, X: Array, y: Array) -> Predicted:
    back = max(1, len(b) // _HELD_BACK)
    trial = clone(model).fit(A[back:], b[back:])
    errors = b[:back] - trial.predict(A[:back])
    smallest = 1e-9 * float(np.std(b)) + np.finfo(np.float64).tiny
    std = max(float(np.sqrt(np.mean(np.square(errors)))), smallest)
    mean = np.asarray(model.fit(A, b).predict(X), dtype=np.float64)
    return Predicted.gaussian(name, y, mean, np.full(len(y), std))
