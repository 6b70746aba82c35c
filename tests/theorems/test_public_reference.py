"""What a certificate says holds for the exact GP that a reader thinks of, on the reader's own rows."""

from __future__ import annotations

import numpy as np
import pytest
from public_reference import ESTIMATORS, FittedProblem, draw_fitted, statements

import certgp
from certgp.features import NystromMap
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.transforms import Clip, Identity, Projection
from helpers import tensor

PROBLEMS = 18


def false_statements(problem: FittedProblem) -> list[str]:
    return [each.theorem for each in statements(problem) if not each.slack >= 0.0]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_certificate_is_exceeded(name):
    broken = {seed: found for seed in range(PROBLEMS) if (found := false_statements(draw_fitted(seed, (name,))))}
    assert broken == {}


def test_training_rows_that_winsorising_moved_are_part_of_the_truth():
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, (1_200, 1)).clip(-100, 100)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1_200)
    gp = certgp.FourierGP(40, length_scale=1.0, noise_variance=0.05, optimize=False, random_state=0).fit(X, y)
    transform = gp._fitted().process.model.transform
    assert bool((transform(gp._fitted().tensor(X)) != gp._fitted().tensor(X)).any())
    exact = certgp.ExactGP(kernel=gp.kernel_, noise_variance=gp.noise_variance_, optimize=False).fit(X, y)
    assert "2 of 1200 training rows lie far out and are pulled in" in gp.certify().notes[0]
    new = np.r_[X[:3], X.min(0)[None] - 2.0, X.max(0)[None] + 0.5, [[20.0]]]
    assert false_statements(FittedProblem("fourier", gp, exact, X, y, new, {"reference_rank": 200})) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_bounds_on_a_gp_on_winsorised_inputs_would_be_noticed(seed, monkeypatch):
    monkeypatch.setattr(LowRankModel, "kernel_inputs", lambda model, X: model.transform(X))
    assert false_statements(draw_fitted(seed, ("fourier",)))


def test_features_of_rows_that_are_pulled_in_are_not_dominated_by_the_kernel():
    """The same features are dominated on their own inputs; behind a clip the certificate goes through a reference."""
    features = NystromMap(Gaussian(1.0), tensor([[0.0], [1.0]]))
    clip = LowRankModel(Clip(tensor([-1.0]), tensor([1.0])), features)
    assert LowRankModel(Identity(1), features).dominated
    assert LowRankModel(Projection(tensor([[1.0]]), tensor([0.0]), tensor([[1.0]])), features).dominated
    assert not clip.dominated
    rows = tensor([[1.0], [5.0]])
    phi = clip(rows).detach()
    assert float(np.linalg.eigvalsh((Gaussian(1.0)(clip.kernel_inputs(rows), rows) - phi @ phi.mT).numpy())[0]) < -0.1
