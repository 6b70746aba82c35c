"""A small version of the surface: scores near the noise, a grid the right way round, scores as defined."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certgp import ExactGP
from certgp.cli.demo_surface import NOISE, SurfaceResult, run_surface, true_surface
from certgp.estimators.scores import rmse, score


@pytest.fixture(scope="module")
def result() -> SurfaceResult:
    return run_surface(n=4000, rank=60)


def test_rows_are_split_nine_to_one(result):
    assert (result.n_train, result.n_test, result.rank) == (3600, 400, 60)


def test_scores_are_near_the_noise(result):
    assert NOISE * 0.9 < result.scores.rmse < NOISE * 1.25
    assert result.scores.nlpd < result.best_nlpd + 0.15
    assert 0.91 < result.scores.coverage < 0.99
    assert result.rmse_truth < 0.5 * NOISE
    assert 0.5 < result.truth_coverage <= 1.0


def test_the_best_nlpd_is_the_entropy_of_the_noise(result):
    assert result.best_nlpd == pytest.approx(math.log(NOISE) + 0.5 * math.log(2 * math.pi) + 0.5)


def test_the_grid_has_the_second_input_along_its_first_index(result):
    i, j = 20, 90
    at = np.array([[result.axis[j], result.axis[i]]])
    assert result.truth[i, j] == pytest.approx(true_surface(at)[0])
    assert result.mean.shape == result.std.shape == result.truth.shape
    assert np.abs(result.mean - result.truth)[20:-20, 20:-20].max() < 0.2


def test_callbacks_see_the_fit(result):
    seen = []
    run_surface(n=300, rank=10, callbacks=(lambda record: seen.append(record.iteration),))
    assert seen[0] == 1
    assert len(result.history) > 0


def test_scores_of_a_model():
    x = np.linspace(0, 3, 30)[:, None]
    y = np.sin(x[:, 0])
    model = ExactGP(random_state=0).fit(x, y + 0.05 * np.cos(9 * x[:, 0]))
    scores = score(model, x, y, coverage=0.5)
    lower, upper = model.predict_interval(x, 0.5)
    assert scores.rmse == pytest.approx(rmse(model.predict(x), y))
    assert scores.nlpd == model.nlpd(x, y)
    assert scores.coverage == np.mean((lower <= y) & (y <= upper))
    assert scores.nominal_coverage == 0.5


def test_rmse():
    assert rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == pytest.approx(math.sqrt(2.0))
