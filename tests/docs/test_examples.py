"""The recipe and the theorem that CONTRIBUTING.md adds do what it says of them."""

from __future__ import annotations

import math
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import certgp
from certgp.estimators.base import ESTIMATORS

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _importable():
    """The examples and the dense oracle on the path; what the examples register is forgotten afterwards."""
    before, folders = dict(ESTIMATORS), [str(HERE / "examples"), str(HERE.parent / "theorems")]
    sys.path[:0] = folders
    yield
    sys.path[:] = [folder for folder in sys.path if folder not in folders]
    ESTIMATORS.clear()
    ESTIMATORS.update(before)


@pytest.fixture
def theorem(_importable) -> ModuleType:
    return import_module("log_determinant")


def test_a_recipe_tries_its_starts_and_trains_the_better_one(tmp_path):
    recipe = import_module("two_starts")
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (400, 1))
    y = np.sin(8.0 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    gp = recipe.TwoStartsGP(60, max_iter=100, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"short", "long"}
    assert min(gp.trials_, key=lambda trial: trial.score).name == gp.trials_[0].name
    assert gp.score(X, y) > 0.95
    assert not gp.certify().vacuous
    gp.save(tmp_path / "model")
    assert np.array_equal(certgp.load(tmp_path / "model").predict(X), gp.predict(X))
    assert recipe.TwoStartsGP(20, max_iter=5, optimize=False).fit(X, y).trials_ == ()
    assert recipe.TwoStartsGP("auto", max_iter=50, tolerance=0.01, random_state=0).fit(X, y).rank_ > 16


def violations(bound) -> list[int]:
    """Problems on which the difference of log determinants is not between 0 and the bound."""
    from small_problems import Truth, draw_problem

    found = []
    for seed in range(150):
        problem = draw_problem(seed)
        if problem.features.dominated:
            with torch.no_grad():
                truth, stats = Truth(problem), problem.statistics()
                upper = bound(stats, problem.signal_variance, problem.noise_variance, problem.features.rounding())
            difference = float(np.log1p(truth.e).sum())
            if not -truth.rounding <= difference <= upper + truth.rounding:
                found.append(seed)
    return found


def test_a_theorem_holds_against_dense_algebra(theorem):
    assert violations(theorem.log_determinant_bound) == []


@pytest.mark.parametrize(("old", "new"), [("return n *", "return 0.5 * n *"), ("gap / (n *", "0.3 * gap / (n *")])
def test_a_weakened_theorem_is_noticed(theorem, old, new):
    source = Path(theorem.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1
    weakened: dict[str, object] = {"math": math}
    exec(source.replace(old, new), weakened)
    assert violations(weakened["log_determinant_bound"])
