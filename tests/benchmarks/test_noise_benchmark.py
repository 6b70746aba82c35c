"""The benchmark of noise models: one fit, scored with and without its noise model, and on inputs that are new."""

from __future__ import annotations

import numpy as np
import pytest

import certgp
import noise
from certgp.training.recipes import deep_member, trainer
from league.data import repeated_inputs


@pytest.fixture
def seconds(monkeypatch):
    monkeypatch.setattr(trainer, "add_noise_model", trainer.add_noise_model)
    monkeypatch.setattr(deep_member, "learn_noise", deep_member.learn_noise)
    return noise.NoiseSeconds()  # wraps both; monkeypatch puts them back


def test_both_noises_of_one_fit(seconds):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (600, 1))
    y = np.sin(3.0 * X[:, 0]) + np.exp(2.0 * X[:, 0]) * rng.standard_normal(600)
    gp = certgp.SparseGP(6, max_iter=5, random_state=0)
    X_test = np.vstack([X[:50], X[500:]])
    found = noise.fit_and_score(gp, X[:500], y[:500], X_test, np.concatenate([y[:50], y[500:]]), seconds)
    assert found["accepted"]
    assert found["auto_nlpd"] < found["constant_nlpd"] - 0.1
    assert 0.0 < found["noise_cpu_seconds"] < found["cpu_seconds"]
    assert found["new_inputs"] == 100
    new = gp.nlpd(X[500:], y[500:])
    assert found["new_auto_nlpd"] == pytest.approx(new)
    assert found["auto_nlpd"] != pytest.approx(new)


def test_a_row_is_new_where_any_of_its_columns_is():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert repeated_inputs(X, np.array([[1.0, 4.0], [3.0, 4.0], [0.0, 0.0]])).tolist() == [False, True, False]
