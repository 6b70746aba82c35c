"""Verdicts of the card: better, worse, no difference, useless; honest intervals or not."""

from __future__ import annotations

import numpy as np
import pytest

from certgp.data import ArrayRows
from certgp.estimators.simple_models import predict_simple_models
from certgp.report import Card, Predicted

RNG = np.random.default_rng(0)
N = 2_000
SIGNAL = RNG.standard_normal(N)
Y = SIGNAL + 0.5 * RNG.standard_normal(N)


def predicted(name: str, mean: np.ndarray, std: float) -> Predicted:
    return Predicted.gaussian(name, Y, mean, np.full(N, std))


CONSTANT = predicted("constant", np.zeros(N), float(Y.std()))
RIGHT = predicted("this model", SIGNAL, 0.5)
ROUGH = predicted("linear", 0.5 * SIGNAL, 0.71)


def test_better_worse_and_as_good():
    assert Card(RIGHT, (CONSTANT, ROUGH)).verdict().startswith("Good: it predicts held-out rows better than a linear")
    worse = predicted("this model", 0.5 * SIGNAL, 0.71)
    better = predicted("gradient boosting", SIGNAL, 0.5)
    assert Card(worse, (CONSTANT, better)).verdict().startswith("Look further: gradient boosting predicts")
    assert Card(RIGHT, (CONSTANT, better)).verdict().startswith("Fair: it predicts held-out rows about as well as")
    useless = predicted("this model", np.zeros(N), 3.0)
    assert Card(useless, (CONSTANT, better)).verdict().startswith("Do not use it")


def test_intervals_that_are_too_narrow_or_too_wide_are_named():
    assert "Its intervals can be trusted: the 95 % ones hold" in Card(RIGHT, ()).verdict()
    narrow = Card(predicted("this model", SIGNAL, 0.3), ()).verdict()
    assert "too narrow" in narrow
    assert "too wide" in Card(predicted("this model", SIGNAL, 0.9), ()).verdict()


def test_better_points_with_worse_intervals_are_told_apart():
    sure = predicted("this model", SIGNAL, 0.12)  # the best points, far too sure
    verdict = Card(sure, (CONSTANT, ROUGH)).verdict()
    assert verdict.startswith("Do not use it") or "although its point predictions are better" in verdict


def test_coverage_by_fifths_sees_where_intervals_fail():
    std = np.where(np.quantile(SIGNAL, 0.8) < SIGNAL, 0.1, 0.5)
    fifths = Card(Predicted.gaussian("this model", Y, SIGNAL, std), ()).coverage_by_fifth()
    assert len(fifths) == 5
    assert min(fifths[:4]) > 0.9 > 0.4 > fifths[4]


def test_coverage_counts_rows_between_quantiles():
    z = 1.2815515594600038
    assert RIGHT.coverage(0.8) == np.mean(np.abs(Y - SIGNAL) <= 0.5 * z)
    assert RIGHT.rmse == pytest.approx(np.sqrt(np.mean((Y - SIGNAL) ** 2)))


def test_simple_models_learn_from_the_training_rows_and_know_their_error():
    X = RNG.standard_normal((600, 2))
    y = 2.0 * X[:, 0] + 0.3 * RNG.standard_normal(600)
    found, learned = predict_simple_models(ArrayRows(X[:400], y[:400]), X[400:], y[400:])
    assert learned == 400
    assert [each.name for each in found] == ["constant", "linear", "gradient boosting"]
    constant, linear, boosting = found
    assert constant.std[0] == pytest.approx(2.0, abs=0.3)
    assert linear.std[0] == pytest.approx(0.3, abs=0.05)
    assert linear.rmse < boosting.rmse < constant.rmse
    assert set(Card(linear, found).to_dict()["scores"]["constant"]) == {
        "rmse",
        "nlpd",
        "coverage_50",
        "coverage_80",
        "coverage_95",
    }
