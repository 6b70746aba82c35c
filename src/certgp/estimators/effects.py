"""What each input does to the predictions of a fitted model, judged on rows it has not learned from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certgp.data import ArrayRows, Rows
from certgp.errors import ExtrapolationWarning
from certgp.report import Effect

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

Array = NDArray[np.float64]
_RELEVANCE_ROWS, _REPEATS = 1_000, 3
_EFFECT_ROWS, _GRID = 60, 21
_DRAWN = 6  # the most relevant inputs
_ENDS = (0.02, 0.98)  # quantiles of an input between which its effect is drawn
_Z95 = 1.96


def find_effects(model: GPRegressor, rows: Rows, seed: int = 0) -> tuple[Effect, ...]:
    """All inputs, the most relevant first; the effect of the first few is drawn."""
    rng = np.random.default_rng(seed)
    picked = np.sort(rng.permutation(rows.n_rows)[:_RELEVANCE_ROWS])
    inputs, target = rows.take(picked)
    assert target is not None
    X, y = np.asarray(inputs, dtype=np.float64), np.asarray(target, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        labels = rows.names or tuple(f"input {j}" for j in range(rows.n_columns))
        groups = _groups(model, labels)
        found = _relevance(model, X, y, rows, rng, groups)
        order = sorted(range(len(found)), key=lambda i: -found[i].relevance)
        single = {i: each[0] for i, (name, each) in enumerate(groups) if name == labels[each[0]]}
        drawn = [i for i in order[:_DRAWN] if i in single and np.ptp(X[:, single[i]]) > 0.0]
        some = X[rng.permutation(len(X))[:_EFFECT_ROWS]]
        effects = {i: _effect(model, found[i], X[:, single[i]], some, single[i], rows) for i in drawn}
    return tuple(effects.get(i, found[i]) for i in order)


def _groups(model: GPRegressor, labels: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Inputs that mean something together, by name: all numbers that one column of a table became. The effect of those
    is drawn that have a number of their own name: a column of numbers, with or without one that says where gaps were.
    """
    if model.encoding_ is None:
        return [(label, [j]) for j, label in enumerate(labels)]
    found, start = [], 0
    for column in model.encoding_.columns:
        width = len(column.outputs)
        found.append((column.outputs[0] if width == 1 else column.name, list(range(start, start + width))))
        start += width
    return found


def _relevance(
    model: GPRegressor, X: Array, y: Array, rows: Rows, rng: np.random.Generator, groups: list[tuple[str, list[int]]]
) -> list[Effect]:
    """Growth of the RMSE when a column is shuffled: sqrt(m + d) - sqrt(m), m the mean squared error and d its growth,
    whose standard error is that of a mean over rows.
    """
    names = rows.names
    before = np.square(np.asarray(model.predict(ArrayRows(X, None, names))) - y)
    found = []
    for label, columns in groups:
        growth = np.zeros(len(y))
        for _ in range(_REPEATS):
            shuffled = X.copy()
            shuffled[:, columns] = rng.permutation(shuffled[:, columns])
            mean = np.asarray(model.predict(ArrayRows(shuffled, None, names)))
            growth += (np.square(mean - y) - before) / _REPEATS
        after = np.sqrt(max(float((before + growth).mean()), 0.0))
        error = float(growth.std()) / np.sqrt(len(y)) / (2.0 * after) if after > 0.0 else 0.0
        found.append(Effect(label, float(after - np.sqrt(before.mean())), error))
    return found


def _effect(model: GPRegressor, known: Effect, column: Array, some: Array, j: int, rows: Rows) -> Effect:
    """The average of f over some rows with input j set to each value of a grid, and its posterior band: the variance of
    an average is the mean of the joint covariance.
    """
    low, high = np.quantile(column, _ENDS)
    grid = np.unique(column) if np.unique(column).size <= _GRID else np.linspace(low, high, _GRID)
    mean, std = np.empty(len(grid)), np.empty(len(grid))
    for i, value in enumerate(grid):
        X = some.copy()
        X[:, j] = value
        f, covariance = model.predict(ArrayRows(X, None, rows.names), return_cov=True, include_noise=False)
        mean[i], std[i] = f.mean(), np.sqrt(max(float(covariance.mean()), 0.0))
    if len(grid) < 2:
        return known
    return Effect(known.name, known.relevance, known.relevance_error, grid, mean, mean - _Z95 * std, mean + _Z95 * std)
