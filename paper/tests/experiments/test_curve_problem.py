"""The paper's curve: the three models agree with each other and their bands are honest."""

from __future__ import annotations

import numpy as np
import pytest

from certgp_paper.experiments.curve_problem import Curve, CurvesResult, run_curves, true_curve


@pytest.fixture(scope="module")
def demo() -> CurvesResult:
    return run_curves(n=100, noise=0.1)


def test_the_function_is_the_papers():
    assert true_curve(np.array([0.0])) == pytest.approx(0.5)
    assert true_curve(np.array([1.0])) == pytest.approx((3 * np.sin(2.0) + np.cos(10.0) + 0.25) / 2)


def test_shapes_and_names(demo):
    assert demo.x.shape == demo.y.shape == (100,)
    assert [c.name for c in demo.curves] == ["exact GP", "Mercer GP, rank 34", "Fourier GP, rank 68"]
    for curve in demo.curves:
        assert curve.mean.shape == demo.grid.shape
        assert (curve.lower <= curve.mean).all()
        assert (curve.mean <= curve.upper).all()


def test_the_mercer_gp_follows_the_exact_one(demo):
    exact, mercer, _ = demo.curves
    assert np.abs(mercer.mean - exact.mean)[_between(demo)].max() < 0.1


def test_the_cosine_is_found_and_the_bands_hold_the_truth_between_the_points(demo):
    # a fit that takes the cosine for noise has an error of its size, 0.35, where the points are
    for curve in demo.curves:
        assert curve.rmse_inputs < 0.25
        assert np.mean(_holds(curve, demo)[_between(demo)]) > 0.85


def test_bands_widen_beyond_the_points(demo):
    # not said of the Fourier GP: it clips its inputs, and its band stays as narrow as at the last point
    for curve in demo.curves[:2]:
        assert np.mean(_holds(curve, demo)[~_between(demo)]) > 0.85


def _between(result: CurvesResult) -> np.ndarray:
    return (result.grid >= result.x.min()) & (result.grid <= result.x.max())


def _holds(curve: Curve, result: CurvesResult) -> np.ndarray:
    return (curve.lower <= result.truth) & (result.truth <= curve.upper)


def test_scores_follow_from_the_curves(demo):
    for curve in demo.curves:
        assert curve.rmse == pytest.approx(np.sqrt(np.mean((curve.mean - demo.truth) ** 2)))
        assert curve.coverage == np.mean(_holds(curve, demo))


def test_the_papers_variant_keeps_ranks_above_the_number_of_points():
    paper = run_curves()
    assert len(paper.x) == 25
    np.testing.assert_array_equal(paper.y, true_curve(paper.x))
    near = np.argmin(np.abs(paper.grid[:, None] - paper.x), axis=0)
    for curve in paper.curves:  # without noise the mean goes through the points
        assert np.abs(curve.mean[near] - paper.truth[near]).max() < 0.1


def test_the_same_seed_gives_the_same_result():
    first, second = (run_curves(n=30, noise=0.1, seed=3) for _ in range(2))
    for a, b in zip(first.curves, second.curves, strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)
