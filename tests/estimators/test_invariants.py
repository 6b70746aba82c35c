"""What must not matter does not: chunks, order of rows, pieces, earlier fits. At full rank all are the exact GP."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from estimator_cases import (
    ALL,
    CASES,
    FIXED,
    assert_same_model,
    every_estimator,
    every_low_rank,
    every_variance,
    pinned,
    predictions,
    problem,
    small,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp import ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.engines import LocalEngine
from certgp.errors import NotCertifiableError

few_examples = settings(max_examples=15, derandomize=True, deadline=None)
NEW = problem(30, seed=1)[0]


def bitwise_equal(first, second, X=NEW):
    return all(np.array_equal(a, b) for a, b in zip(predictions(first, X), predictions(second, X), strict=True))


@every_low_rank
@given(chunk_rows=st.integers(1, 100))
@few_examples
def test_chunks_do_not_matter(cls, chunk_rows):
    X, y = problem()
    found = pinned(cls, engine=LocalEngine(chunk_rows=chunk_rows)).fit(X, y)
    assert_same_model(found, pinned(cls).fit(X, y), NEW, rtol=1e-9)


@every_estimator
@given(seed=st.integers(0, 10_000), standardize=st.booleans())
@few_examples
def test_order_of_rows_does_not_matter(cls, seed, standardize):
    X, y = problem()
    order = np.random.default_rng(seed).permutation(len(y))
    found = pinned(cls, standardize=standardize).fit(X[order], y[order])
    assert_same_model(found, pinned(cls, standardize=standardize).fit(X, y), NEW, rtol=1e-9)


@pytest.mark.parametrize("projection", [None, 2])
def test_order_of_rows_does_not_choose_between_tied_eigenvalues(projection):
    """Standardised columns start with equal spreads and length-scales: rounding must not decide which index is kept."""
    X, y = problem(d=2 if projection is None else 5)
    models = [
        small(MercerGP, rank=20, projection=projection, optimize=False).fit(X[order], y[order])
        for order in (np.random.default_rng(seed).permutation(len(y)) for seed in range(6))
    ]
    for model in models[1:]:
        assert_same_model(model, models[0], X, rtol=1e-9)


@every_estimator
@given(cuts=st.lists(st.integers(1, 59), min_size=1, max_size=5, unique=True))
@few_examples
def test_pieces_give_what_all_rows_give(cls, cuts):
    X, y = problem(80)
    edges = [0, *(20 + cut for cut in sorted(cuts)), 80]
    model = pinned(cls)
    for start, stop in itertools.pairwise(edges):
        model.partial_fit(X[start:stop], y[start:stop])
    whole = pinned(cls).fit(X, y)
    assert_same_model(model, whole, NEW, rtol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-9)
    assert model.rank_ == whole.rank_


def test_a_thousand_pieces_give_what_all_rows_give_and_the_model_does_not_grow():
    X, y = problem(3_027)
    model, sizes = pinned(MercerGP), []
    for start, stop in itertools.pairwise([0, *range(30, 3_028, 3)]):
        model.partial_fit(X[start:stop], y[start:stop])
        sizes += [len(pickle.dumps(model))] if start in (30, 3_024) else []
    whole = pinned(MercerGP).fit(X, y)
    assert_same_model(model, whole, NEW, rtol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-9)
    assert abs(sizes[1] - sizes[0]) < 100  # digits of its numbers


@every_variance
def test_pieces_give_the_same_covariance(case):
    X, y = problem(80)
    pieces = case.pinned().fit(X[:50], y[:50]).partial_fit(X[50:79], y[50:79]).partial_fit(X[79:], y[79:])
    whole = case.pinned().fit(X, y)
    np.testing.assert_allclose(
        pieces.predict(NEW, return_cov=True)[1], whole.predict(NEW, return_cov=True)[1], atol=1e-9
    )


@every_estimator
def test_the_first_partial_fit_is_fit(cls):
    X, y = problem()
    first, fitted = small(cls, max_iter=200).partial_fit(X, y), small(cls, max_iter=200).fit(X, y)
    assert bitwise_equal(first, fitted)
    assert np.array_equal(first.history_.values, fitted.history_.values)


@every_estimator
def test_partial_fit_holds_hyper_parameters_features_and_units(cls):
    X, y = problem(120)
    model = small(cls, max_iter=200).fit(X[:60], y[:60])
    kernel, noise, steps = repr(model.kernel_), model.noise_variance_, model.n_iter_
    before = model.score(X[60:], y[60:])
    model.partial_fit(X[60:], 1.0 * y[60:])
    assert (repr(model.kernel_), model.noise_variance_, model.n_iter_) == (kernel, noise, steps)
    assert model.score(X[60:], y[60:]) > before
    assert model.log_marginal_likelihood_ == model.log_marginal_likelihood()


@every_estimator
def test_a_refused_piece_leaves_the_model_as_it_was(cls):
    X, y = problem()
    model, twin = (pinned(cls).fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.partial_fit(np.full((3, 2), np.nan), y[:3])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.partial_fit(X[:, :1], y)
    assert bitwise_equal(model, twin)


@every_estimator
def test_fit_is_deterministic_for_a_random_state(cls):
    X, y = problem()
    assert bitwise_equal(small(cls, max_iter=200).fit(X, y), small(cls, max_iter=200).fit(X, y))
    source = [small(cls, max_iter=200, random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2)]
    assert bitwise_equal(*source)


@pytest.mark.parametrize("sampling", ["auto", "iid", "orthogonal", "sobol", "widened", "leverage"])
def test_frequencies_follow_the_random_state(sampling):
    X, y = problem()
    models = [small(FourierGP, sampling=sampling, random_state=s, **FIXED).fit(X, y) for s in (0, 0, 1)]
    assert bitwise_equal(models[0], models[1])
    assert not np.array_equal(models[0].predict(NEW), models[2].predict(NEW))


@every_estimator
def test_refit_forgets_the_earlier_fit(cls):
    (X, y), (other_X, other_y) = problem(), problem(60, d=3, seed=5)
    used = small(cls, max_iter=200).fit(other_X, 50.0 * other_y).partial_fit(other_X, other_y).fit(X, y)
    fresh = small(cls, max_iter=200).fit(X, y)
    assert bitwise_equal(used, fresh)
    assert (used.rank_, used.n_features_in_, used.n_iter_) == (fresh.rank_, fresh.n_features_in_, fresh.n_iter_)
    assert np.array_equal(used.history_.values, fresh.history_.values)


@every_estimator
def test_a_refused_refit_does_not_corrupt_the_model(cls):
    """Either the old model stays whole or it is gone: old statistics must not be read in new units."""
    X, y = problem()
    model, twin = (small(cls, optimize=False).fit(X, y) for _ in range(2))
    with pytest.raises(ValueError, match="length_scale"):
        model.set_params(length_scale=-1.0).fit(10.0 * X + 3.0, 100.0 * y)
    assert bitwise_equal(model, twin)


@every_low_rank
def test_certificates_do_not_follow_rows_that_change_after_fit(cls):
    X, y = problem(60)
    model = pinned(cls).fit(X, y)
    assert model.certify(reference_rank=40).kl.upper > 0
    X *= 1.001
    with pytest.raises(NotCertifiableError, match="changed after fit") as caught:
        model.certify(reference_rank=40)
    assert "certify(rows=(X, y))" in str(caught.value)


@pytest.mark.parametrize("kernel", ["gaussian", "matern12", "matern32", "matern52"])
def test_sparse_gp_at_all_rows_is_the_exact_gp(kernel):
    X, y = problem(60)
    options = FIXED | {"kernel": kernel, "standardize": False}
    sparse = SparseGP(60, inducing=X, jitter=1e-10, **options).fit(X, y)
    exact = ExactGP(**options).fit(X, y)
    assert_same_model(sparse, exact, NEW, rtol=1e-6)
    covariances = [model.predict(NEW, return_cov=True)[1] for model in (sparse, exact)]
    np.testing.assert_allclose(*covariances, atol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("variance", ["dtc", "lowrank"])
def test_mercer_gp_of_high_rank_is_the_exact_gp(standardize, variance):
    (X, y), new = problem(80, d=1), problem(30, d=1, seed=1)[0]
    options = FIXED | {"standardize": standardize}
    mercer = MercerGP(60, variance=variance, **options).fit(X, y)
    assert_same_model(mercer, ExactGP(**options).fit(X, y), new, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "matern52"])
def test_fourier_gp_nears_the_exact_gp(kernel):
    (X, y), new = problem(60, d=1), problem(30, d=1, seed=1)[0]
    exact = ExactGP(kernel=kernel, **FIXED).fit(X, y).predict(new, return_std=True)
    options = FIXED | {"kernel": kernel, "sampling": "sobol", "cap_rank": False, "random_state": 0, "winsorize": False}
    errors = [
        np.abs(np.subtract(FourierGP(rank, **options).fit(X, y).predict(new, return_std=True), exact)).max()
        for rank in (16, 128, 1024)
    ]
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.05


@every_estimator
def test_optimised_approximations_agree_with_the_optimised_exact_gp(cls):
    (X, y), (new, seen) = problem(150, d=1), problem(100, d=1, seed=1)
    options = {FourierGP: {"winsorize": False}, LocalGP: {"kernel": "gaussian"}}.get(cls, {})
    model = small(cls, rank=50, max_iter=400, **options).fit(X, y)
    exact = ExactGP(max_iter=400).fit(X, y)
    assert model.nlpd(new, seen) == pytest.approx(exact.nlpd(new, seen), abs=0.05)
    if cls is not LocalGP:  # which learns from the likelihood of rows given all others
        assert model.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=3.0)


@every_estimator
def test_duplicated_rows_are_two_observations(cls):
    """Twice the rows at twice the noise variance is the same posterior."""
    X, y = problem(60)
    once = pinned(cls, noise_variance=0.1).fit(X, y)
    twice = pinned(cls, noise_variance=0.2).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    for a, b in zip(
        once.predict(NEW, return_std=True, include_noise=False),
        twice.predict(NEW, return_std=True, include_noise=False),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_cases_cover_every_estimator():
    assert {case.cls for case in CASES} == set(ALL)
