"""Everything a user sees is in the units of the data: y -> a y + b and X -> c X + d move results as they must."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_cases import ALL, FIXED, every_estimator, problem, small
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp import ExactGP, MercerGP, SparseGP

SCALES = np.array([0.7, 1.1])
INDUCING = problem(20, seed=99)[0]
factors = st.floats(-3.0, 3.0).map(lambda e: float(10.0**e))
signs = st.sampled_from([-1.0, 1.0])
unit_changes = {"a": st.builds(lambda s, f: s * f, signs, factors), "b": st.floats(-5.0, 5.0)} | {
    "c": st.builds(lambda s, f: s * f, signs, factors),
    "d": st.floats(-5.0, 5.0),
}


def in_units(cls, a=1.0, b=0.0, c=1.0, d=0.0, **parameters):
    """The same model for data in other units."""
    given = {
        "length_scale": SCALES * abs(c),
        "signal_variance": 1.5 * a**2,
        "noise_variance": 0.1 * a**2,
        "optimize": False,
    }
    if cls is MercerGP:
        given["input_scale"] = np.array([0.9, 1.2]) * abs(c)
    if cls is SparseGP:
        given["inducing"] = c * INDUCING + d
    return small(cls, **given | parameters)


def assert_scaled(cls, a, b, c, d, **parameters):
    (X, y), (new, seen) = problem(60), problem(30, seed=1)
    one = in_units(cls, **parameters).fit(X, y)
    other = in_units(cls, a, b, c, d, **parameters).fit(c * X + d, a * y + b)
    new_units = c * new + d
    mean, std = one.predict(new, return_std=True)
    found_mean, found_std = other.predict(new_units, return_std=True)
    close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose((found_mean - b) / a, mean, **close)
    np.testing.assert_allclose(found_std / abs(a), std, **close)
    covariances = [m.predict(rows, return_cov=True)[1] for m, rows in ((one, new), (other, new_units))]
    np.testing.assert_allclose(covariances[1] / a**2, covariances[0], **close)
    intervals = [np.sort(m.predict_interval(rows), axis=0) for m, rows in ((one, new), (other, new_units))]
    np.testing.assert_allclose(np.sort((intervals[1] - b) / a, axis=0), intervals[0], **close)
    np.testing.assert_allclose(other.kernel_.length_scale, abs(c) * one.kernel_.length_scale.numpy(), rtol=1e-9)
    assert float(other.kernel_.signal_variance) == pytest.approx(a**2 * float(one.kernel_.signal_variance), rel=1e-9)
    assert other.noise_variance_ == pytest.approx(a**2 * one.noise_variance_, rel=1e-9)
    assert other.nlpd(new_units, a * seen + b) == pytest.approx(one.nlpd(new, seen) + np.log(abs(a)), rel=1e-6)
    evidence = one.log_marginal_likelihood() - len(y) * np.log(abs(a))
    assert other.log_marginal_likelihood() == pytest.approx(evidence, rel=1e-6)
    assert other.log_marginal_likelihood_ == other.log_marginal_likelihood()
    assert other.score(new_units, a * seen + b) == pytest.approx(one.score(new, seen), rel=1e-6)


@every_estimator
def test_kilo_units_and_a_shift(cls):
    assert_scaled(cls, a=1000.0, b=5.0, c=0.01, d=-3.0)


@every_estimator
@given(**unit_changes)
@settings(max_examples=20, derandomize=True, deadline=None)
def test_any_change_of_units(cls, a, b, c, d):
    assert_scaled(cls, a, a * b, c, c * d)


@every_estimator
@given(a=unit_changes["a"], c=factors)
@settings(max_examples=10, derandomize=True, deadline=None)
def test_scaling_without_standardisation(cls, a, c):
    assert_scaled(cls, a, 0.0, c, 0.0, standardize=False)


@every_estimator
def test_given_hyper_parameters_are_what_is_fitted(cls):
    X, y = problem(60)
    model = in_units(cls, a=7.0, c=20.0).fit(20.0 * X + 1.0, 7.0 * y - 40.0)
    np.testing.assert_allclose(model.kernel_.length_scale, 20.0 * SCALES, rtol=1e-12)
    assert float(model.kernel_.signal_variance) == pytest.approx(1.5 * 49.0, rel=1e-12)
    assert model.noise_variance_ == pytest.approx(4.9, rel=1e-12)


@every_estimator
def test_standardisation_only_centres_a_model_whose_hyper_parameters_are_given(cls):
    X, y = problem(60)
    shifted = small(cls, **FIXED | ({"projection": None, "input_scale": 1.0} if cls is MercerGP else {}))
    shifted.set_params(**({"inducing": INDUCING} if cls is SparseGP else {}))
    plain = shifted.fit(X, y).predict(X, return_std=True)
    centred = shifted.set_params(standardize=False).fit(X - X.mean(0), y - y.mean()) if cls is not SparseGP else None
    if centred is None:
        centred = shifted.set_params(standardize=False, inducing=INDUCING - X.mean(0)).fit(X - X.mean(0), y - y.mean())
    mean, std = centred.predict(X - X.mean(0), return_std=True)
    np.testing.assert_allclose(plain, [mean + y.mean(), std], rtol=1e-7, atol=1e-9)


@every_estimator
@pytest.mark.parametrize("parameters", [{"optimize": False}, {"max_iter": 8}], ids=["start", "learned"])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_powers_of_two_change_no_rounding_at_all(cls, parameters):
    """Scaled by powers of two, the standardised data are bitwise the same, and so is every optimiser step."""
    (X, y), new = problem(60), problem(30, seed=1)[0]
    c = np.array([2.0**-5, 2.0**7])
    one, other = small(cls, **parameters).fit(X, y), small(cls, **parameters).fit(c * X, 1024.0 * y)
    assert np.array_equal(other.predict(c * new), 1024.0 * one.predict(new))
    assert np.array_equal(other.predict(c * new, True)[1], 1024.0 * one.predict(new, True)[1])
    assert np.array_equal(other.kernel_.length_scale, c * one.kernel_.length_scale.numpy())
    assert other.noise_variance_ == 1024.0**2 * one.noise_variance_
    np.testing.assert_array_equal(other.sample_y(c * new, 3), 1024.0 * one.sample_y(new, 3))
    assert np.array_equal(other.history_.values, one.history_.values)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_learned_hyper_parameters_follow_the_units(cls):
    (X, y), new = problem(60), problem(30, seed=1)[0]
    one = small(cls, **UNTIED_START).fit(X, y)
    other = small(cls, **UNTIED_START | {"length_scale": 0.01 * SCALES}).fit(0.01 * X - 3.0, 1000.0 * y + 5.0)
    np.testing.assert_allclose((other.predict(0.01 * new - 3.0) - 5.0) / 1000.0, one.predict(new), atol=1e-3)
    np.testing.assert_allclose(other.kernel_.length_scale, 0.01 * one.kernel_.length_scale.numpy(), rtol=1e-2)
    assert other.noise_variance_ == pytest.approx(1e6 * one.noise_variance_, rel=1e-2)


UNTIED_START = {"length_scale": SCALES, "max_iter": 15}


def test_projected_kernel_acts_on_the_published_map():
    """kernel_ of a projected MercerGP lives in the coordinates (x - mean) projection_, whatever the units of X."""
    X, y = problem(100, d=6)
    one = small(MercerGP, projection=2, optimize=False, length_scale=[0.8, 1.3]).fit(X, y)
    other = small(MercerGP, projection=2, optimize=False, length_scale=[0.8, 1.3]).fit(1000.0 * X + 7.0, y)
    np.testing.assert_allclose(other.predict(1000.0 * X + 7.0), one.predict(X), atol=1e-8)
    np.testing.assert_allclose(np.abs(1000.0 * other.projection_), np.abs(one.projection_), rtol=1e-6, atol=1e-10)
    spread = ((X - X.mean(0)) @ one.projection_).std(0)
    np.testing.assert_allclose(spread, 1.0, rtol=1e-9)
    assert one.kernel_.length_scale.tolist() == pytest.approx([0.8, 1.3])


def test_projected_variance_is_that_of_the_published_kernel():
    X, y = problem(100, d=6)
    model = small(MercerGP, rank=60, projection=2, length_scale=1.0, noise_variance=0.1, optimize=False).fit(X, y)
    Z = (X - X.mean(0)) @ model.projection_
    reference = {"length_scale": 1.0, "signal_variance": float(model.kernel_.signal_variance)}
    exact = ExactGP(**reference, noise_variance=0.1, optimize=False).fit(Z, y)
    np.testing.assert_allclose(model.predict(X), exact.predict(Z), atol=2e-2)


def test_projection_is_named_only_where_it_exists():
    X, y = problem(60)
    with pytest.raises(AttributeError, match="projection_ exists only where a projection was learned"):
        _ = small(MercerGP, optimize=False).fit(X, y).projection_
