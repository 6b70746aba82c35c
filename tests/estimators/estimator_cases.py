"""Estimators and small problems that the estimator tests share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from certgp import ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.estimators import GPRegressor

Array = NDArray[np.float64]
LOW_RANK: tuple[type[GPRegressor], ...] = (MercerGP, FourierGP, SparseGP)
HOLDS_ROWS: tuple[type[GPRegressor], ...] = (ExactGP, LocalGP)
ALL: tuple[type[GPRegressor], ...] = (*LOW_RANK, *HOLDS_ROWS)
FIXED: dict[str, Any] = {"length_scale": 0.8, "signal_variance": 1.5, "noise_variance": 0.1, "optimize": False}
# equal length-scales on standardised columns tie the eigenvalues of MercerGP; test_invariants.py looks at ties
UNTIED: dict[str, Any] = {"length_scale": (0.9, 1.3), "optimize": False}


def _name(cls: type) -> str:
    return cls.__name__


every_estimator = pytest.mark.parametrize("cls", ALL, ids=_name)
every_low_rank = pytest.mark.parametrize("cls", LOW_RANK, ids=_name)


def problem(n: int = 80, d: int = 2, seed: int = 0, noise: float = 0.1) -> tuple[Array, Array]:
    """Rows of a standard normal and a noisy smooth function of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, -1] + noise * rng.standard_normal(n)


def small(cls: type[GPRegressor], rank: int = 20, **parameters: Any) -> GPRegressor:
    """An estimator of a rank that small problems afford."""
    if cls in HOLDS_ROWS:
        return cls(**{"random_state": 0} | parameters)
    return cls(**{"rank": rank, "random_state": 0} | parameters)


def pinned(cls: type[GPRegressor], rank: int = 20, d: int = 2, **parameters: Any) -> GPRegressor:
    """Only statistics are learned from the rows: hyper-parameters, measure, box and inducing points are given."""
    fixed: dict[str, Any] = FIXED | {"standardize": False}
    if cls is MercerGP:
        fixed |= {"projection": None, "input_scale": tuple(1.0 + 0.2 * j for j in range(d))}  # no ties
    if cls is FourierGP:
        fixed |= {"winsorize": False}
    if cls is LocalGP:
        fixed |= {"kernel": "gaussian", "neighbours": 200, "train_neighbours": 200}  # all rows
    if cls is SparseGP:
        fixed |= {"inducing": problem(rank, d, seed=99)[0]}
    return small(cls, rank, **fixed | parameters)


@dataclass(frozen=True)
class Case:
    """An estimator with one of the variances that it offers."""

    name: str
    cls: type[GPRegressor]
    parameters: dict[str, Any]

    def small(self, **parameters: Any) -> GPRegressor:
        return small(self.cls, **self.parameters | parameters)

    def pinned(self, **parameters: Any) -> GPRegressor:
        return pinned(self.cls, **self.parameters | parameters)


CASES = (
    Case("mercer-dtc", MercerGP, {"variance": "dtc"}),
    Case("mercer-lowrank", MercerGP, {"variance": "lowrank"}),
    Case("fourier-lowrank", FourierGP, {}),
    Case("sparse-dtc", SparseGP, {"variance": "dtc"}),
    Case("sparse-lowrank", SparseGP, {"variance": "lowrank"}),
    Case("exact", ExactGP, {}),
    Case("local", LocalGP, {}),
)
every_variance = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def error_of(action: Callable[[], Any], kind: type[BaseException] = ValueError) -> str:
    """The text of the error that the action raises."""
    with pytest.raises(kind) as caught:
        action()
    return str(caught.value)


def assert_mentions(text: str, *fragments: object) -> None:
    """An error or warning names the argument, what was found and what to do."""
    missing = [str(fragment) for fragment in fragments if str(fragment) not in text]
    assert not missing, f"{missing} not in {text!r}"


def predictions(model: GPRegressor, X: Any) -> tuple[Array, Array, float]:
    """Mean, standard deviation and log evidence: all that two equal models must share."""
    mean, std = model.predict(X, return_std=True)
    return mean, std, model.log_marginal_likelihood()


def assert_same_model(first: GPRegressor, second: GPRegressor, X: Any, rtol: float) -> None:
    """Equal predictions and evidence, errors relative to the largest number of each kind."""
    for a, b in zip(predictions(first, X), predictions(second, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max())
