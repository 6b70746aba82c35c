"""Evidence from statistics against dense Gaussian densities; bounds that are bounds; gradients that are derivatives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.errors import NotPositiveDefiniteError
from certgp.features import MercerMap, NystromMap
from certgp.gp import (
    GramSpectrum,
    Statistics,
    elbo,
    evidence_gradient,
    exact_log_evidence,
    log_evidence,
    log_evidence_upper_bound,
)
from certgp.gp.evidence import trace_gap
from certgp.kernels import Gaussian
from helpers import (
    ALL_KERNELS,
    INPUT_LAWS,
    central_differences,
    dense_log_evidence,
    feature_statistics,
    random_inputs,
    random_target,
    tensor,
)

ROUNDING = 1e-9


def random_statistics(
    rows: int, rank: int, seed: int, size: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, Statistics]:
    rng = np.random.default_rng(seed)
    phi, y = tensor(size * rng.standard_normal((rows, rank)) / math.sqrt(rank)), tensor(rng.standard_normal(rows))
    return phi, y, Statistics.of(phi, y)


@given(rows=st.integers(1, 40), rank=st.integers(1, 50), seed=st.integers(0, 1000), noise=st.floats(1e-3, 10.0))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_log_evidence_is_the_dense_log_density(rows, rank, seed, noise):
    phi, y, stats = random_statistics(rows, rank, seed)
    S = phi @ phi.mT + noise * torch.eye(rows, dtype=torch.float64)
    np.testing.assert_allclose(log_evidence(stats, noise), dense_log_evidence(S, y), rtol=ROUNDING, atol=1e-8)


def test_exact_log_evidence_is_the_dense_log_density():
    X = random_inputs(0, 25, 2)
    K, y = Gaussian(0.8)(X, X), random_target(X, 0)
    expected = dense_log_evidence(K + 0.05 * torch.eye(25, dtype=torch.float64), y)
    np.testing.assert_allclose(exact_log_evidence(K, y, 0.05), expected, rtol=1e-12)


def test_bounds_are_their_stated_formulas():
    phi, y, _ = random_statistics(30, 7, 1, 0.5)
    sf2, s2, eye = 2.0, 0.3, torch.eye(30, dtype=torch.float64)
    stats = Statistics.of(phi, y, torch.full((30,), sf2))
    tau = 30 * sf2 - float((phi @ phi.mT).trace())
    S, inflated = phi @ phi.mT + s2 * eye, phi @ phi.mT + (s2 + tau) * eye
    np.testing.assert_allclose(trace_gap(stats), tau, rtol=1e-13)
    np.testing.assert_allclose(
        elbo(stats, trace_gap(stats), s2), dense_log_evidence(S, y) - tau / (2.0 * s2), rtol=1e-11
    )
    quadratic = float(y @ torch.linalg.solve(inflated, y))
    upper = -0.5 * (float(torch.logdet(S)) + quadratic + 30 * math.log(2.0 * math.pi))
    np.testing.assert_allclose(log_evidence_upper_bound(stats, trace_gap(stats), s2), upper, rtol=1e-11)


@given(
    method=st.sampled_from(["mercer", "nystrom"]),
    family=st.sampled_from(ALL_KERNELS),
    law=st.sampled_from(sorted(INPUT_LAWS)),
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 60),
    dimension=st.integers(1, 4),
    rank=st.integers(1, 40),
    length_scale=st.floats(0.1, 5.0),
    signal=st.floats(0.1, 10.0),
    noise=st.floats(1e-3, 2.0),
)
@settings(deadline=None, derandomize=True, max_examples=150)
def test_elbo_and_upper_bound_enclose_the_exact_evidence(
    method, family, law, seed, rows, dimension, rank, length_scale, signal, noise
):
    X = random_inputs(seed, rows, dimension, law)
    y = random_target(X, seed, noise)
    if method == "mercer":
        kernel = Gaussian(length_scale, signal)
        features = MercerMap(kernel, np.full(dimension, 1.0), rank)
    else:
        kernel = family(length_scale, signal)
        features = NystromMap(kernel, X[:rank])
    stats = feature_statistics(features, X, y, signal)
    exact = exact_log_evidence(kernel(X, X), y, noise)
    slack = ROUNDING * (1.0 + abs(exact))
    assert elbo(stats, trace_gap(stats), noise) <= exact + slack
    assert exact <= log_evidence_upper_bound(stats, trace_gap(stats), noise) + slack


def test_bounds_close_as_the_rank_grows():
    X = random_inputs(3, 80, 1)
    y, kernel = random_target(X, 3), Gaussian([0.7])
    exact = exact_log_evidence(kernel(X, X), y, 0.1)
    widths = []
    for rank in (5, 10, 20, 40):
        stats = feature_statistics(MercerMap(kernel, [1.0], rank), X, y)
        widths.append(
            (
                exact - elbo(stats, trace_gap(stats), 0.1),
                log_evidence_upper_bound(stats, trace_gap(stats), 0.1) - exact,
            )
        )
    assert (np.diff(widths, axis=0) < 0.0).all()
    assert max(widths[-1]) < 1e-6


def test_a_singular_problem_raises_and_names_the_remedy():
    phi = tensor([[1.0, 1.0]])
    with pytest.raises(NotPositiveDefiniteError, match=r"A \+ s2 I \(raise noise_variance or lower rank\)"):
        log_evidence(Statistics.of(phi, tensor([1.0])), 1e-20)


# -------------------- gradients

OBJECTIVES = {
    "marginal": lambda s, sf2, s2: log_evidence(s, s2),
    "elbo": lambda s, sf2, s2: elbo(s, trace_gap(s), s2),
}
objectives = pytest.mark.parametrize("objective", sorted(OBJECTIVES))
sizes = pytest.mark.parametrize(("rows", "rank"), [(30, 5), (4, 6)])
SF2, S2 = 1.7, 0.4


def negative(objective: str, unit: Statistics, sf2: float, s2: float) -> float:
    return -OBJECTIVES[objective](unit.scaled(sf2), sf2, s2)


def unit_statistics(rows: int, rank: int) -> Statistics:
    return random_statistics(rows, rank, 5, 0.7)[2]


@objectives
@sizes
def test_gradient_value_is_the_negative_objective(objective, rows, rank):
    unit = unit_statistics(rows, rank)
    found = evidence_gradient(unit, SF2, S2, objective).value
    np.testing.assert_allclose(found, negative(objective, unit, SF2, S2), rtol=1e-12)


@objectives
@sizes
def test_gradient_by_the_variances(objective, rows, rank):
    unit = unit_statistics(rows, rank)
    found = evidence_gradient(unit, SF2, S2, objective)
    numeric = central_differences(lambda t: negative(objective, unit, *np.exp(t)), np.log([SF2, S2]), 1e-3)
    np.testing.assert_allclose([found.by_log_signal, found.by_log_noise], numeric, rtol=1e-7)


@objectives
@sizes
def test_gradient_by_the_projection(objective, rows, rank):
    unit = unit_statistics(rows, rank)

    def value(b):
        return negative(objective, Statistics(unit.A, tensor(b), unit.yty, unit.n, unit.kernel_trace), SF2, S2)

    found = evidence_gradient(unit, SF2, S2, objective).by_projection.numpy()
    np.testing.assert_allclose(found, central_differences(value, unit.b.numpy(), 1e-3), rtol=1e-7, atol=1e-10)


@objectives
@sizes
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradient_from_a_spectrum_is_the_same(objective, rows, rank, dtype):
    unit = unit_statistics(rows, rank)
    spectrum = GramSpectrum.of(unit)
    Phi, y, weight = (
        random_inputs(1, 7, rank).to(dtype),
        random_inputs(2, 7, 1)[:, 0],
        random_inputs(3, 7, 1)[:, 0].exp(),
    )
    digits = {"rtol": 1e-10, "atol": 1e-12} if dtype is torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    for variances in ((SF2, S2), (0.3, 2.0)):
        found, expected = spectrum.gradient(*variances, objective), evidence_gradient(unit, *variances, objective)
        for name in ("value", "by_log_signal", "by_log_noise", "by_projection"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-12)
        for weights in (None, weight):
            one, other = (each.by_features(Phi, y, weights) for each in (found, expected.cotangents))
            assert one.dtype is dtype
            np.testing.assert_allclose(one, other, **digits)


def test_a_spectrum_refuses_what_has_no_digits_left():
    with pytest.raises(NotPositiveDefiniteError, match="raise noise_variance"):
        GramSpectrum.of(unit_statistics(30, 5)).gradient(1.0, 1e-17, "marginal")
    unit = unit_statistics(30, 5)
    with pytest.raises(NotPositiveDefiniteError, match="no eigenvalues"):
        GramSpectrum.of(replace(unit, A=unit.A * float("nan")))


@objectives
@sizes
def test_gradient_by_the_gram_matrix(objective, rows, rank):
    unit = unit_statistics(rows, rank)
    i, j = np.tril_indices(rank)

    def value(lower):
        A = unit.A.clone()
        A[i, j] = tensor(lower)
        A[j, i] = tensor(lower)
        return negative(objective, Statistics(A, unit.b, unit.yty, unit.n, unit.kernel_trace), SF2, S2)

    G = evidence_gradient(unit, SF2, S2, objective).by_gram.numpy()
    np.testing.assert_array_equal(G, G.T)
    along_symmetric = np.where(i == j, G[i, j], 2.0 * G[i, j])
    np.testing.assert_allclose(
        along_symmetric, central_differences(value, unit.A.numpy()[i, j], 1e-4), rtol=1e-6, atol=1e-9
    )
