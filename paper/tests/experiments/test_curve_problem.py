"""The paper's curve: its models are the paper's, agree with the exact GP, and the point sets are as stated."""

from __future__ import annotations

import numpy as np
import pytest

from certgp.errors import InvalidInputError
from certgp_paper.experiments.curve_problem import (
    DTC,
    EXACT,
    FOURIER,
    GRID,
    LOW_RANK,
    MERCER,
    OWN,
    PAPER,
    CurveModel,
    curve_models,
    draw_points,
    fit_curve,
    true_curve,
)

EXACT_GP = CurveModel(PAPER, EXACT, 25, LOW_RANK)


def test_the_function_and_the_points_are_the_papers():
    assert true_curve(np.array([0.0])) == pytest.approx(0.5)
    assert true_curve(np.array([1.0])) == pytest.approx((3 * np.sin(2.0) + np.cos(10.0) + 0.25) / 2)
    x, y = draw_points(25, 3)
    assert len(x) == 25
    np.testing.assert_array_equal(y, true_curve(x))
    assert not np.array_equal(x, draw_points(25, 4)[0])


def test_the_papers_models_have_its_likelihood_order_and_frequencies():
    x = draw_points(25, 0)[0]
    dtc, low = curve_models(PAPER, MERCER, 34)
    assert [model.name for model in (dtc, low)] == ["MGP, r = 34, DTC variance", "MGP, r = 34, low-rank variance"]
    parameters = low.build(x, 0).get_params()
    assert parameters["input_scale"] == pytest.approx(x.std())  # alpha = 1 / sqrt 2 for standardised x
    wanted = {"objective": "marginal", "index_set": "total_degree", "variance": "paper", "projection": None}
    wanted |= {"confirm": False}
    assert {key: parameters[key] for key in wanted} == wanted
    assert dtc.build(x, 0).get_params() == parameters | {"variance": "dtc"}
    (fourier,) = curve_models(PAPER, FOURIER, 68)
    parameters = fourier.build(x, 5).get_params()
    wanted = {"sampling": "iid", "winsorize": False, "objective": "marginal", "variance": "paper", "random_state": 5}
    wanted |= {"confirm": False}
    assert not EXACT_GP.build(x, 0).get_params()["confirm"]
    assert {key: parameters[key] for key in wanted} == wanted


def test_certgps_models_are_the_defaults_with_constant_noise():
    x = draw_points(25, 0)[0]
    for features in (MERCER, FOURIER):
        (model,) = curve_models(OWN, features, 10)
        estimator = model.build(x, 0)
        given = {"rank": 10, "cap_rank": False, "length_scale": 0.2, "noise": "constant", "random_state": 0}
        given |= {"projection": None} if features == MERCER else {}
        assert estimator.get_params() == type(estimator)().get_params() | given


def test_unknown_models_are_refused():
    for variant, features in (("neither", MERCER), (PAPER, "wavelets")):
        with pytest.raises(InvalidInputError, match="there is no model"):
            curve_models(variant, features, 4)


def test_the_papers_mgp_is_the_exact_gp_and_only_its_band_depends_on_the_variance():
    x, y = draw_points(25, 0)
    exact = fit_curve(EXACT_GP, x, y)
    dtc, low = (fit_curve(model, x, y) for model in curve_models(PAPER, MERCER, 34))
    assert max(low.distances(exact).values()) < 0.02
    np.testing.assert_array_equal(dtc.mean, low.mean)
    narrow_dtc, narrow = (fit_curve(model, x, y) for model in curve_models(PAPER, MERCER, 4))
    assert narrow.width < low.width < narrow_dtc.width  # the audit's finding on point set 0


@pytest.mark.parametrize(
    "model", [EXACT_GP, *curve_models(OWN, MERCER, 34), *curve_models(PAPER, FOURIER, 68)], ids=str
)
def test_without_noise_the_mean_goes_through_the_points(model):
    x, y = draw_points(25, 0)
    curve = fit_curve(model, x, y)
    near = np.argmin(np.abs(GRID[:, None] - x), axis=0)
    assert np.abs(curve.mean[near] - true_curve(GRID)[near]).max() < 0.1
    assert curve.rmse == pytest.approx(np.sqrt(np.mean((curve.mean - true_curve(GRID)) ** 2)))
    inside = (curve.lower <= true_curve(GRID)) & (true_curve(GRID) <= curve.upper)
    assert curve.coverage == np.mean(inside)
    np.testing.assert_array_equal(curve.mean, fit_curve(model, x, y).mean)  # the same seed, the same result


def test_distances_are_in_standard_deviations_of_the_other_mean():
    x, y = draw_points(25, 1)
    exact = fit_curve(EXACT_GP, x, y)
    assert exact.distances(exact) == {"distance_mean": 0.0, "distance_lower": 0.0, "distance_upper": 0.0}
    (low,) = curve_models(OWN, MERCER, 4)
    found = fit_curve(low, x, y)
    expected = np.sqrt(np.mean((found.lower - exact.lower) ** 2)) / exact.mean.std()
    assert found.distances(exact)["distance_lower"] == pytest.approx(expected)
    assert low.variance == DTC
