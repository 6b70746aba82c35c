"""Parameters that cannot work are refused with their name, what was found and what would work."""

from __future__ import annotations

import re

import numpy as np
import pytest
from estimator_cases import (
    LOW_RANK,
    assert_mentions,
    error_of,
    every_estimator,
    every_low_rank,
    pinned,
    problem,
    small,
)

from certgp import ExactGP, FourierGP, MercerGP, SparseGP
from certgp.engines import LocalEngine
from certgp.errors import InvalidInputError
from certgp.kernels import Gaussian, Matern32

X, Y = problem()
KERNEL_NAMES = ("gaussian", "matern12", "matern32", "matern52")
NUMBERS = ("length_scale", "signal_variance", "noise_variance")


def refusal(cls, rows=X, **parameters):
    return error_of(lambda: small(cls, **parameters).fit(rows, Y), InvalidInputError)


@every_low_rank
@pytest.mark.parametrize("rank", [0, -3, 10.0, 2.5, True, "many", None, [10], np.float64(3.0)], ids=repr)
def test_rank(cls, rank):
    assert_mentions(refusal(cls, rank=rank), "rank must be a positive whole number", repr(rank))


@every_low_rank
@pytest.mark.parametrize("rank", [np.int64(7), np.int32(7), 7])
def test_whole_numbers_of_any_kind_are_ranks(cls, rank):
    assert small(cls, rank=rank, optimize=False).fit(X, Y).rank_ == 6 + (cls is not FourierGP)


@every_estimator
@pytest.mark.parametrize("max_iter", [0, -1, 2.5, True, "all", None], ids=repr)
def test_max_iter(cls, max_iter):
    text = refusal(cls, max_iter=max_iter)
    assert_mentions(text, "max_iter must be a whole number of at least 1", repr(max_iter))


@every_estimator
@pytest.mark.parametrize("name", ["standardize", "optimize", "calibrate"])
@pytest.mark.parametrize("value", ["no", None, 0, 1.0], ids=repr)
def test_flags_are_true_or_false(cls, name, value):
    assert_mentions(refusal(cls, **{name: value}), f"{name} must be True or False", f"found {value!r}")
    assert np.isfinite(small(cls, standardize=np.True_, optimize=np.False_).fit(X, Y).noise_variance_)


@every_estimator
def test_unknown_kernels(cls):
    assert_mentions(refusal(cls, kernel="rbf"), "unknown kernel 'rbf'", *KERNEL_NAMES)
    for kernel in (3, None, Gaussian):
        assert_mentions(refusal(cls, kernel=kernel), "kernel must be a name or a kernel object", repr(kernel))


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52", Matern32(1.0)], ids=str)
def test_mercer_has_the_gaussian_kernel_only(kernel):
    name = kernel if isinstance(kernel, str) else kernel.name
    text = refusal(MercerGP, kernel=kernel)
    assert_mentions(text, name, "Mercer", "kernel='gaussian'", "SparseGP or ExactGP")


CHOICES = [
    *((cls, "objective", ("'marginal'", "'elbo'")) for cls in LOW_RANK),
    *((cls, "variance", ("'dtc'", "'lowrank'", "'paper'")) for cls in LOW_RANK),
    *((cls, "dtype", ("'float64'", "'float32'")) for cls in LOW_RANK),
    (FourierGP, "sampling", ("'auto'", "'iid'", "'orthogonal'", "'sobol'", "'widened'", "'leverage'", "'modified'")),
    (MercerGP, "index_set", ("'optimal'", "'total_degree'", "'box'")),
    (SparseGP, "inducing", ("'greedy'", "'kmeans'")),
]


@pytest.mark.parametrize(("cls", "name", "choices"), CHOICES, ids=lambda v: getattr(v, "__name__", v))
def test_unknown_choices_list_the_known_ones(cls, name, choices):
    assert_mentions(refusal(cls, **{name: "quick"}), f"{name} must be one of", *choices, "found 'quick'")
    if name != "inducing":
        assert_mentions(refusal(cls, **{name: 3}), f"{name} must be one of", *choices, "found 3")


def test_choices_of_other_types():
    assert_mentions(refusal(MercerGP, dtype=np.float32), "dtype must be one of 'float64', 'float32'", "numpy.float32")


@pytest.mark.parametrize("name_value_remedy", [("objective", "elbo", "marginal"), ("variance", "dtc", "lowrank")])
def test_fourier_features_are_not_dominated(name_value_remedy):
    name, value, remedy = name_value_remedy
    text = refusal(FourierGP, **{name: value})
    assert_mentions(
        text, f"{name}={value!r}", "dominated by the kernel", "FourierGP does not have", f"use {name}={remedy!r}"
    )


@every_low_rank
@pytest.mark.parametrize("engine", ["spark", None, 5, LocalEngine], ids=repr)
def test_unknown_engines(cls, engine):
    if engine is LocalEngine:
        with pytest.raises((InvalidInputError, TypeError), match=r"engine|LocalEngine"):
            small(cls, engine=engine).fit(X, Y)
    else:
        assert_mentions(refusal(cls, engine=engine), "engine must be 'local' or an engine object", repr(engine))


@pytest.mark.parametrize("chunk_rows", [0, -1, 2.5, "all"], ids=repr)
def test_chunks_of_no_rows(chunk_rows):
    text = error_of(lambda: small(FourierGP, engine=LocalEngine(chunk_rows)).fit(X, Y), InvalidInputError)
    assert_mentions(text, "chunk_rows", repr(chunk_rows))


@every_estimator
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf], ids=repr)
def test_hyper_parameters_are_positive_numbers(cls, name, value):
    assert_mentions(refusal(cls, **{name: value}), f"{name} must be positive and finite", f"found {value!r}")


@pytest.mark.parametrize("name", NUMBERS)
def test_hyper_parameters_are_not_words(name):
    assert_mentions(refusal(ExactGP, **{name: "long"}), f"{name} must be positive and finite", "found 'long'")


@every_estimator
def test_length_scales_per_column(cls):
    assert_mentions(refusal(cls, length_scale=[1.0, -2.0]), "length_scale must be positive and finite", "[1.0, -2.0]")
    assert_mentions(refusal(cls, length_scale=[1.0, 2.0, 3.0]), "length_scale has 3 numbers", "2 dimension(s)")
    assert_mentions(refusal(cls, length_scale=[]), "length_scale has 0 numbers", "2 dimension(s)")
    assert_mentions(refusal(cls, kernel=Gaussian([1.0, 2.0, 3.0])), "length_scale has 3 numbers", "2 dimension(s)")


def test_length_scales_of_a_projected_kernel():
    rows = problem(d=6)[0]
    text = refusal(MercerGP, rows=rows, projection=2, length_scale=[1.0] * 6)
    assert_mentions(text, "length_scale has 6 numbers", "2 dimension(s)")


@pytest.mark.parametrize("projection", [0, -1, 1.0, True, "two"], ids=repr)
def test_projection(projection):
    text = refusal(MercerGP, projection=projection)
    assert_mentions(text, "projection must be a whole number of at least 1", f"found {projection!r}")


def test_projection_to_more_dimensions_than_columns_says_what_to_do():
    text = refusal(MercerGP, projection=3)
    assert_mentions(text, "projection=3", "2 column(s)")
    assert re.search("projection=None|at most|smaller", text), f"no remedy in {text!r}"


@pytest.mark.parametrize("input_scale", [0.0, -1.0, np.nan, [1.0, -1.0], "wide"], ids=repr)
def test_input_scale(input_scale):
    assert_mentions(refusal(MercerGP, input_scale=input_scale), "input_scale must be positive", repr(input_scale))


def test_input_scales_of_another_number_than_the_columns():
    assert_mentions(refusal(MercerGP, input_scale=[1.0, 2.0, 3.0]), "input_scale", "3", "2")


@pytest.mark.parametrize("jitter", [-1e-6, 1.0, np.nan, None, "small"], ids=repr)
def test_jitter(jitter):
    assert_mentions(refusal(SparseGP, jitter=jitter), "jitter must lie in [0, 1)", f"found {jitter!r}")


@pytest.mark.parametrize("shape", [(5, 1), (5, 3), (5,), (), (2, 5, 2), (0, 2)], ids=str)
def test_inducing_points_of_another_shape(shape):
    text = refusal(SparseGP, inducing=np.ones(shape))
    assert_mentions(text, "inducing must be one of greedy, kmeans or a finite array of shape (r, 2)", f"shape {shape}")


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=repr)
def test_inducing_points_that_are_not_finite(value):
    text = refusal(SparseGP, inducing=np.array([[0.0, 1.0], [value, 1.0]]))
    assert_mentions(text, "inducing must be", "finite")
    assert re.search("NaN|infinit", text), (
        f"{text!r} names the shape, which is right, and not the numbers, which are not"
    )


@pytest.mark.parametrize("inducing", [[["a", "b"]], [[1.0, 2.0], [3.0]], None], ids=repr)
def test_inducing_points_that_are_no_array(inducing):
    assert_mentions(refusal(SparseGP, inducing=inducing), "inducing must be")


@pytest.fixture(scope="module")
def fitted():
    return pinned(MercerGP).fit(X, Y)


def test_std_and_covariance_together(fitted):
    text = error_of(lambda: fitted.predict(X, return_std=True, return_cov=True), InvalidInputError)
    assert_mentions(text, "return_std and return_cov", "the covariance holds the variances")


@pytest.mark.parametrize("quantiles", [0.0, 1.0, -0.1, 1.5, [0.5, 1.0], [0.1, np.nan], [[0.1]], "half"], ids=repr)
def test_quantiles(fitted, quantiles):
    text = error_of(lambda: fitted.predict_quantiles(X, quantiles), InvalidInputError)
    assert_mentions(text, "quantiles must lie strictly between 0 and 1", repr(quantiles))


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 95, np.nan, "wide", None], ids=repr)
def test_coverage(fitted, coverage):
    text = error_of(lambda: fitted.predict_interval(X, coverage), InvalidInputError)
    assert_mentions(text, "coverage must lie strictly between 0 and 1", repr(coverage))


@pytest.mark.parametrize("n_samples", [-1, 0, 1.5, "two"], ids=repr)
def test_n_samples(fitted, n_samples):
    text = error_of(lambda: fitted.sample_y(X, n_samples), InvalidInputError)
    assert_mentions(text, "n_samples", repr(n_samples))


@every_estimator
def test_unknown_parameters(cls):
    with pytest.raises(TypeError, match="n_components"):
        cls(n_components=3)
    with pytest.raises(ValueError, match="Invalid parameter 'n_components'"):
        cls().set_params(n_components=3)


@every_estimator
def test_parameters_are_checked_at_fit_and_not_before(cls):
    assert cls(length_scale=-1.0, max_iter=-1).get_params()["max_iter"] == -1


def test_exact_gp_has_no_rank():
    assert "rank" not in ExactGP().get_params()
