"""What each input does to the predictions of a fitted model, judged on rows it has not learned from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certgp.data import ArrayRows, Rows
from certgp.errors import ExtrapolationWarning
from certgp.report import Curve, Effect
from certgp.tabular.settings import Setting

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
        some = X[rng.permutation(len(X))[:_EFFECT_ROWS]]
        curves = {i: tuple(_curves(model, groups[i], X, some, rows)) for i in order[:_DRAWN]}
    return tuple(replace(found[i], curves=curves.get(i, ())) for i in order)


@dataclass(frozen=True)
class _Group:
    """Inputs that mean something together: all numbers that one column of a table became."""

    name: str
    columns: list[int]
    settings: tuple[Setting, ...]


def _groups(model: GPRegressor, labels: Sequence[str]) -> list[_Group]:
    if model.encoding_ is None:
        return [_Group(label, [j], (Setting(label),)) for j, label in enumerate(labels)]
    found, start = [], 0
    for column in model.encoding_.columns:
        width = len(column.outputs)
        found.append(_Group(column.name, list(range(start, start + width)), column.settings()))
        start += width
    return found


def _relevance(
    model: GPRegressor, X: Array, y: Array, rows: Rows, rng: np.random.Generator, groups: Sequence[_Group]
) -> list[Effect]:
    """Growth of the RMSE when a column is shuffled: sqrt(m + d) - sqrt(m), m the mean squared error and d its growth,
    whose standard error is that of a mean over rows.
    """
    names = rows.names
    before = np.square(np.asarray(model.predict(ArrayRows(X, None, names))) - y)
    found = []
    for group in groups:
        growth = np.zeros(len(y))
        for _ in range(_REPEATS):
            shuffled = X.copy()
            shuffled[:, group.columns] = rng.permutation(shuffled[:, group.columns])
            mean = np.asarray(model.predict(ArrayRows(shuffled, None, names)))
            growth += (np.square(mean - y) - before) / _REPEATS
        after = np.sqrt(max(float((before + growth).mean()), 0.0))
        error = float(growth.std()) / np.sqrt(len(y)) / (2.0 * after) if after > 0.0 else 0.0
        found.append(Effect(group.name, float(after - np.sqrt(before.mean())), error))
    return found


def _curves(model: GPRegressor, group: _Group, X: Array, some: Array, rows: Rows) -> Iterator[Curve]:
    """The average of f over some rows with an input set to each value of a grid, and its posterior band: the variance
    of an average is the mean of the joint covariance.
    """
    for setting in group.settings:
        columns = [group.columns[j] for j in setting.outputs]
        grid = _grid(X[:, columns[0]]) if setting.grid is None else setting.grid
        numbers = grid[:, None] if setting.numbers is None else setting.numbers
        if len(grid) < 2:
            continue
        mean, std = np.empty(len(grid)), np.empty(len(grid))
        for i, value in enumerate(numbers):
            changed = some.copy()
            changed[:, columns] = value
            f, covariance = model.predict(ArrayRows(changed, None, rows.names), return_cov=True, include_noise=False)
            mean[i], std[i] = f.mean(), np.sqrt(max(float(covariance.mean()), 0.0))
        yield Curve(setting.name, grid, mean, mean - _Z95 * std, mean + _Z95 * std, setting.labels)


def _grid(column: Array) -> Array:
    """Values along a number, but for the outermost."""
    values = np.unique(column)
    low, high = np.quantile(column, _ENDS)
    return values if values.size <= _GRID else np.linspace(low, high, _GRID)
