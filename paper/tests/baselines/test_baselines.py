"""SVIGP, DKL and RFEDGP learn, know their noise, repeat for a seed; GPyTorch is optional."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from certgp_paper.baselines.deep_kernel import DeepKernelGP
from certgp_paper.baselines.random_feature_deep_gp import RandomFeatureDeepGP
from certgp_paper.baselines.svigp import StochasticVariationalGP

NOISE = 0.2
MODELS = {
    "SVIGP": StochasticVariationalGP(20, max_iter=40, batch_size=50, learning_rate=0.05, random_state=0),
    "DKL": DeepKernelGP(100, hidden=(32, 16), pretraining=10, max_iter=15, random_state=0),
    "RFEDGP": RandomFeatureDeepGP(
        frequencies=20, samples=5, max_iter=40, batch_size=50, learning_rate=0.03, random_state=0
    ),
}


def problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """In units far from standard ones."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n)
    return 10.0 + 5.0 * x[:, None], 100.0 + 20.0 * (np.sin(3.0 * x) + NOISE * rng.standard_normal(n))


@pytest.fixture(scope="module")
def rows():
    return *problem(400, 0), *problem(300, 1)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, rows):
    return clone(MODELS[request.param]).fit(*rows[:2])


def test_predictions_beat_a_constant_by_far(fitted, rows):
    _, y, new, seen = rows
    assert fitted.score(new, seen) > 0.85
    constant = -norm.logpdf(seen, y.mean(), y.std()).mean()
    truth = -norm.logpdf(seen, 100.0 + 20.0 * np.sin(3.0 * (new[:, 0] - 10.0) / 5.0), 20.0 * NOISE).mean()
    assert fitted.nlpd(new, seen) < constant - 0.7
    assert fitted.nlpd(new, seen) > truth - 0.05


def test_intervals_hold_their_share_and_the_objective_falls(fitted, rows):
    _, _, new, seen = rows
    lower, upper = fitted.predict_interval(new, 0.9)
    assert np.mean((lower <= seen) & (seen <= upper)) > 0.8
    mean, std = fitted.predict(new, return_std=True)
    assert np.all((lower < mean) & (mean < upper) & (std > 0))
    assert np.median(std) < 2.2 * 20.0 * NOISE  # short runs have not found all of the signal yet
    assert fitted.history_[-1] < fitted.history_[0]
    assert np.isfinite(fitted.history_).all()


def test_a_seed_decides_everything(rows):
    X, y, new, _ = rows
    for name, model in MODELS.items():
        quick = clone(model).set_params(max_iter=2)
        first, again = (clone(quick).fit(X[:100], y[:100]) for _ in range(2))
        assert np.array_equal(first.predict(new), again.predict(new)), name
        assert np.array_equal(first.predict(new), first.predict(new)), name
        other = clone(quick).set_params(random_state=1).fit(X[:100], y[:100])
        assert not np.array_equal(first.predict(new), other.predict(new)), name


def test_gaussian_baselines_score_a_gaussian_density(rows):
    X, y, new, seen = rows
    model = clone(MODELS["SVIGP"]).set_params(max_iter=3).fit(X, y)
    mean, std = model.predict(new, return_std=True)
    assert model.nlpd(new, seen) == pytest.approx(-norm.logpdf(seen, mean, std).mean(), rel=1e-9)
