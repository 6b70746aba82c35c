"""Rows that carry little: constant columns, constant targets, equal rows, fewer rows than the rank."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from estimator_cases import FIXED, HOLDS_ROWS, UNTIED, assert_mentions, every_estimator, every_low_rank, problem, small

from certgp import ExactGP, FourierGP, SparseGP
from certgp.errors import (
    CertgpWarning,
    ConstantDataWarning,
    FarNumbersWarning,
    RankWarning,
    RepeatedRowsWarning,
    WeakSignalWarning,
    WeightScaleWarning,
)


def warnings_of(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action()
    assert all(issubclass(w.category, CertgpWarning) for w in caught), [str(w.message) for w in caught]
    return result, {w.category: w for w in caught}


def with_constant(X, value):
    return np.insert(X, 1, value, axis=1)


@every_estimator
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9], ids=str)
def test_a_constant_column_is_named_and_the_fit_goes_on(cls, value):
    X, y = problem()
    options = {"length_scale": 1.0, "optimize": False}
    model, found = warnings_of(lambda: small(cls, rank=40, **options).fit(with_constant(X, value), y))
    assert list(found) == [ConstantDataWarning]
    assert_mentions(str(found[ConstantDataWarning].message), "column(s) 1 of X", "do not vary")
    assert model.score(with_constant(X, value), y) > 0.9


@every_estimator
def test_a_constant_column_of_a_frame_is_called_by_its_name(cls):
    X, y = problem()
    frame = pd.DataFrame(with_constant(X, 3.0), columns=["age", "planet", "height"])
    _, found = warnings_of(lambda: small(cls, optimize=False).fit(frame, y))
    assert_mentions(str(found[ConstantDataWarning].message), "column(s) planet of X")


def test_many_constant_columns_are_not_all_listed():
    X, y = problem()
    padded = np.hstack([X, np.zeros((80, 30))])
    _, found = warnings_of(lambda: small(ExactGP, optimize=False).fit(padded, y))
    text = str(found[ConstantDataWarning].message)
    assert_mentions(text, "column(s) 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


@every_estimator
def test_a_constant_column_is_ignored_as_the_warning_says(cls):
    """No row says how the target moves with it, so a new value of it must not move the prediction."""
    X, y = problem()
    model, _ = warnings_of(lambda: small(cls, optimize=False).fit(with_constant(X, 3.0), y))
    np.testing.assert_allclose(model.predict(with_constant(X, 4.0)), model.predict(with_constant(X, 3.0)), rtol=1e-9)


@every_estimator
@pytest.mark.parametrize("constant", [0.0, 5.0, -1e6], ids=str)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_constant_target_is_predicted_everywhere(cls, constant, optimize):
    X, _ = problem()
    model, found = warnings_of(lambda: small(cls, optimize=optimize).fit(X, np.full(80, constant)))
    assert_mentions(str(found[ConstantDataWarning].message), "the target y does not vary", f"{constant:g}")
    assert list(found) == [ConstantDataWarning]
    mean, std = model.predict(np.vstack([X, 100.0 + X]), return_std=True)
    np.testing.assert_allclose(mean, constant, rtol=1e-6, atol=1e-6)
    assert (std > 0).all()
    assert std.max() <= 1e-6 * max(1.0, abs(constant))
    assert model.converged_
    assert "constant target" in model.stop_reason_


@every_estimator
def test_a_constant_target_is_predicted_as_the_warning_says_without_standardisation_too(cls):
    X, _ = problem()
    model, found = warnings_of(lambda: small(cls, standardize=False).fit(X, np.full(80, 5.0)))
    promised = "every prediction will be 5" in str(found[ConstantDataWarning].message)
    assert not promised or model.predict(X + 20.0) == pytest.approx(5.0)


@every_estimator
def test_equal_rows_give_the_mean_of_the_targets(cls):
    X, y = problem()
    equal = np.ones_like(X)
    model, found = warnings_of(lambda: small(cls).fit(equal, y))
    assert set(found) == {ConstantDataWarning, WeakSignalWarning} | (set() if cls in HOLDS_ROWS else {RankWarning})
    mean, std = model.predict(equal[:3], return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=0.02)
    np.testing.assert_allclose(std, y.std(), rtol=0.1)


@every_estimator
def test_repeated_rows_are_no_trouble(cls):
    X, y = problem(40)
    fit = small(cls, rank=30, max_iter=400).fit
    model, found = warnings_of(lambda: fit(np.repeat(X, 5, axis=0), np.repeat(y, 5)))
    assert RepeatedRowsWarning in found
    assert np.isfinite(model.predict(X, return_std=True)).all()
    assert model.score(X, y) > 0.9


@every_estimator
def test_two_rows_are_enough(cls):
    model, _ = warnings_of(lambda: small(cls).fit([[0.0], [1.0]], [1.0, 2.0]))
    mean, std = model.predict([[0.0], [0.5], [1.0]], return_std=True)
    assert np.isfinite([mean, std]).all()
    assert mean[0] <= mean[1] <= mean[2]


@every_estimator
def test_wildly_different_scales_of_columns(cls):
    X, y = problem()
    rows = X * [1e-9, 1e12] + [1.0, -1e13]
    assert small(cls, rank=40, max_iter=400).fit(rows, y).score(rows, y) > 0.9


@every_low_rank
class TestRankAboveTheNumberOfRows:
    def test_it_is_capped_with_a_warning(self, cls):
        X, y = problem(30)
        model, found = warnings_of(lambda: small(cls, rank=100, **UNTIED).fit(X, y))
        text = str(found[RankWarning].message)
        assert_mentions(text, "rank=100", "30 distinct row(s)", "rank 30 is used")
        assert model.rank_ == 30

    def test_repeated_rows_count_once(self, cls):
        X, y = problem(20)
        doubled = np.vstack([X, X, -0.0 * X]), np.concatenate([y, y, y])
        model, found = warnings_of(lambda: small(cls, rank=100, **UNTIED).fit(*doubled))
        assert_mentions(str(found[RankWarning].message), "21 distinct row(s)")
        assert model.rank_ <= 21

    def test_the_warning_names_the_rank_that_is_used(self, cls):
        X, y = problem(31)
        model, found = warnings_of(lambda: small(cls, rank=100, **UNTIED).fit(X, y))
        assert_mentions(str(found[RankWarning].message), f"rank {model.rank_} is used")

    def test_the_warning_points_at_the_line_that_called_fit(self, cls):
        X, y = problem(30)
        _, found = warnings_of(lambda: small(cls, rank=100, **UNTIED).fit(X, y))
        assert found[RankWarning].filename == __file__

    def test_enough_rows_give_no_warning(self, cls):
        X, y = problem(30)
        assert small(cls, rank=30, **UNTIED).fit(X, y).rank_ == 30


@pytest.mark.parametrize("cap_rank", [True, False])
def test_cap_rank_false_keeps_the_rank(cap_rank):
    X, y = problem(30)
    model, found = warnings_of(lambda: FourierGP(100, cap_rank=cap_rank, **UNTIED).fit(X, y))
    assert (model.rank_, bool(found)) == ((30, True) if cap_rank else (100, False))


@every_estimator
def test_uncapped_ranks_predict_as_well(cls):
    X, y = problem(30)
    model = small(cls, rank=60, **UNTIED) if cls in HOLDS_ROWS else small(cls, rank=60, cap_rank=False, **UNTIED)
    mean, std = model.fit(X, y).predict(X, return_std=True)
    assert np.isfinite([mean, std]).all()
    assert model.score(X, y) > 0.9


def test_given_inducing_points_decide_the_rank_without_a_warning():
    X, y = problem(50)
    model, found = warnings_of(lambda: SparseGP(inducing=X[:7], **FIXED).fit(X, y))
    assert model.rank_ == 7
    assert not found


def test_an_odd_rank_of_fourier_features_is_rounded_down_to_pairs():
    X, y = problem()
    assert [FourierGP(rank, random_state=0, **FIXED).fit(X, y).rank_ for rank in (2, 3, 10, 11)] == [2, 2, 10, 10]


def test_one_fourier_feature_is_refused_or_kept_but_not_doubled_silently():
    X, y = problem()
    try:
        assert FourierGP(1, random_state=0, **FIXED).fit(X, y).rank_ <= 1
    except ValueError as error:
        assert "rank" in str(error)  # noqa: PT017 (either way is fine)


@every_estimator
def test_a_number_far_from_all_others_does_not_decide_the_scale_of_its_column(cls):
    """A code for what is missing would press all other numbers of its column into one point."""
    X, y = problem()
    coded = np.vstack([X, [[1e6, 0.0]]])
    model, found = warnings_of(lambda: small(cls, rank=40, **FIXED).fit(coded, np.append(y, y.mean())))
    assert_mentions(str(found[FarNumbersWarning].message), "column 0 of X", "1e+06", "far from all others")
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("share", [0.02, 0.3])
@pytest.mark.parametrize("code", [1e6, -999.0])
def test_a_code_for_missing_values_does_not_hide_its_column(code, share):
    X, y = problem()
    coded = X.copy()
    coded[: round(share * len(X)), 0] = code
    model, found = warnings_of(lambda: SparseGP(40, **FIXED).fit(coded, y))
    assert_mentions(str(found[FarNumbersWarning].message), "column 0 of X", f"{code:g}", "far from all others")
    kept = slice(round(share * len(X)), None)
    assert model.score(X[kept], y[kept]) > 0.9


def test_numbers_that_are_measured_are_no_codes():
    """Neither zeros of a sparse column, nor both values of a flag, nor a cap next to other numbers."""
    X, y = problem()
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [X, rng.random(len(X)) < 0.3, rng.poisson(0.2, len(X)), np.minimum(rng.pareto(1.0, len(X)), 9.0)]
    )
    _, found = warnings_of(lambda: SparseGP(10, **FIXED).fit(X, y))
    assert FarNumbersWarning not in found


@pytest.mark.parametrize(("factor", "warned"), [(1.0, False), (1e-6, True), (1e6, True)])
def test_weights_far_from_one_on_average_are_warned_of(factor, warned):
    X, y = problem()
    weights = factor * np.linspace(0.5, 2.0, len(X))
    _, found = warnings_of(lambda: SparseGP(10, **FIXED).fit(X, y, weights))
    assert (WeightScaleWarning in found) == warned


@every_estimator
@pytest.mark.filterwarnings("ignore::certgp.errors.ExtrapolationWarning")
def test_predictions_at_the_largest_floats_are_numbers(cls):
    X, y = problem()
    model, _ = warnings_of(lambda: small(cls, **FIXED).fit(X, y))
    mean, std = model.predict(np.array([[1e308, 0.0], [0.0, -1e308]]), return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
