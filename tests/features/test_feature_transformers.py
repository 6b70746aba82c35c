"""The feature maps as scikit-learn transformers."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from certgp.errors import InvalidInputError
from certgp.features import FourierFeatures, MercerFeatures, NystromFeatures
from certgp.features.spectral import SAMPLINGS
from certgp.kernels import kernel_from_name
from helpers import random_inputs

TRANSFORMERS = [
    MercerFeatures(length_scale=1.5, rank=20),
    FourierFeatures(rank=20, random_state=0),
    NystromFeatures(rank=20, random_state=0),
]
transformers = pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda t: type(t).__name__)


def scikit_learn_checks():
    """All checks of scikit-learn, except one that skips itself unless SCIPY_ARRAY_API is set before SciPy loads."""
    for estimator in (MercerFeatures(), FourierFeatures(random_state=0), NystromFeatures(random_state=0)):
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            if name != "check_array_api_input" or "SCIPY_ARRAY_API" in os.environ:
                yield pytest.param(instance, check, id=f"{type(instance).__name__}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(scikit_learn_checks()))
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@transformers
def test_feature_names_and_shape(transformer):
    X = random_inputs(0, 50, 3).numpy()
    fitted = clone(transformer).fit(X)
    prefix = type(transformer).__name__.lower()
    assert fitted.transform(X).shape == (50, 20)
    assert list(fitted.get_feature_names_out()) == [f"{prefix}{i}" for i in range(20)]


@transformers
def test_pandas_output(transformer):
    frame = pd.DataFrame(random_inputs(1, 30, 2).numpy(), columns=["a", "b"], index=range(5, 35))
    plain = clone(transformer).fit(frame)
    out = clone(transformer).set_output(transform="pandas").fit_transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(plain.get_feature_names_out())
    assert list(out.index) == list(frame.index)
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(frame))


@transformers
def test_clone_keeps_parameters_and_forgets_the_fit(transformer):
    fitted = clone(transformer).fit(random_inputs(2, 20, 2).numpy())
    copy = clone(fitted)
    assert copy.get_params() == transformer.get_params()
    assert not hasattr(copy, "map_")


@transformers
def test_signal_variance_scales_the_gram_matrix(transformer):
    X = random_inputs(3, 25, 2).numpy()
    unit, scaled = clone(transformer).fit(X), clone(transformer).set_params(signal_variance=4.0)
    if "noise_variance" in scaled.get_params():
        scaled.set_params(noise_variance=4.0 * unit.noise_variance)
    np.testing.assert_allclose(scaled.fit(X).transform(X), 2.0 * unit.transform(X), rtol=1e-12)


@transformers
def test_works_in_a_pipeline(transformer):
    X = 5.0 + 3.0 * random_inputs(4, 25, 2).numpy()
    scaled = StandardScaler().fit_transform(X)
    piped = make_pipeline(StandardScaler(), clone(transformer)).fit_transform(X)
    np.testing.assert_allclose(piped, clone(transformer).fit_transform(scaled), rtol=1e-12)


@pytest.mark.parametrize(
    ("transformer", "tolerance"),
    [
        (MercerFeatures([1.5, 3.0], 1.0, 900, 2.0), 1e-6),
        (NystromFeatures([1.5, 3.0], 60, 2.0, jitter=1e-9), 1e-6),
        (NystromFeatures([1.5, 3.0], 60, 2.0, "matern32", "kmeans", jitter=1e-9, random_state=0), 1e-6),
        *[
            (FourierFeatures([1.5, 3.0], 4000, 2.0, sampling=s, random_state=0), 0.2)
            for s in SAMPLINGS
            if s != "modified"
        ],
        (FourierFeatures([1.5, 3.0], 40_000, 2.0, sampling="modified", random_state=0), 0.3),
        *[(FourierFeatures([1.5, 3.0], 4000, 2.0, f"matern{k}2", random_state=0), 0.2) for k in (1, 3, 5)],
    ],
    ids=repr,
)
def test_gram_matrix_approaches_the_kernel_matrix(transformer, tolerance):
    X = random_inputs(5, 60, 2).numpy()
    phi = transformer.fit_transform(X)
    family = kernel_from_name(transformer.get_params().get("kernel", "gaussian"))
    K = family([1.5, 3.0], 2.0)(*[random_inputs(5, 60, 2)] * 2).numpy()
    assert np.abs(phi @ phi.T - K).max() < tolerance


def test_same_seed_same_features():
    X = random_inputs(6, 20, 2).numpy()
    for sampling in SAMPLINGS:
        first, again, other = (
            FourierFeatures(rank=8, sampling=sampling, random_state=s).fit_transform(X) for s in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_nystrom_has_at_most_as_many_features_as_distinct_rows():
    X = np.repeat(random_inputs(7, 5, 2).numpy(), 4, axis=0)
    for inducing in ("greedy", "kmeans"):
        fitted = NystromFeatures(rank=15, inducing=inducing, random_state=0).fit(X)
        assert fitted.transform(X).shape == (20, 5)
        assert len(fitted.get_feature_names_out()) == 5


def test_box_rounds_the_rank_down_to_a_full_power():
    assert MercerFeatures(rank=50, index_set="box").fit_transform(random_inputs(8, 10, 2).numpy()).shape == (10, 49)


@pytest.mark.parametrize(("rank", "width"), [(9, 8), (8, 8), (3, 2)])
def test_fourier_rounds_an_odd_rank_down(rank, width):
    assert FourierFeatures(rank=rank, random_state=0).fit_transform(random_inputs(9, 10, 2).numpy()).shape == (
        10,
        width,
    )


@transformers
@pytest.mark.parametrize("rank", [0, -3, 2.5, "10", True])
def test_rank_must_be_a_positive_whole_number(transformer, rank):
    with pytest.raises(InvalidInputError, match="rank must be a positive whole number, found"):
        clone(transformer).set_params(rank=rank).fit(random_inputs(10, 10, 2).numpy())


@transformers
def test_number_of_length_scales_must_fit_the_columns(transformer):
    with pytest.raises(InvalidInputError, match="length_scale has 3 numbers but X has 2 columns"):
        clone(transformer).set_params(length_scale=[1.0, 2.0, 3.0]).fit(random_inputs(10, 10, 2).numpy())


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, [1.0, -1.0]])
def test_input_scale_must_be_positive(bad):
    with pytest.raises(InvalidInputError, match="input_scale"):
        MercerFeatures(input_scale=bad, rank=5).fit(random_inputs(10, 10, 2).numpy())


def test_number_of_input_scales_must_fit_the_columns():
    with pytest.raises(InvalidInputError, match="input_scale"):
        MercerFeatures(input_scale=[1.0, 2.0, 3.0], rank=5).fit(random_inputs(10, 10, 2).numpy())


def test_jitter_must_not_be_negative():
    """A negative jitter would lift Phi Phi' above K, against what the class promises."""
    with pytest.raises(InvalidInputError, match="jitter"):
        NystromFeatures(jitter=-0.2, length_scale=0.2, rank=5).fit(random_inputs(10, 10, 2).numpy())


def test_unknown_choices_are_named():
    X = random_inputs(11, 10, 2).numpy()
    with pytest.raises(InvalidInputError, match="unknown kernel 'rbf'"):
        FourierFeatures(kernel="rbf").fit(X)
    with pytest.raises(InvalidInputError, match="unknown sampling 'halton'"):
        FourierFeatures(sampling="halton").fit(X)
    with pytest.raises(InvalidInputError, match="unknown inducing 'random'; choose one of greedy, kmeans"):
        NystromFeatures(inducing="random").fit(X)
    with pytest.raises(InvalidInputError, match="unknown index_set 'cross'"):
        MercerFeatures(index_set="cross").fit(X)
