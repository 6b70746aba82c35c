"""Profiling out the variances: the same optimum as brute force, inside bounds and at them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from certgp.features import MercerMap
from certgp.gp import Statistics, elbo, exact_log_evidence, log_evidence, profile_evidence
from certgp.gp.evidence import trace_gap
from certgp.gp.exact import profile_exact_evidence
from certgp.kernels import Gaussian
from helpers import central_differences, feature_statistics, random_inputs, random_target, tensor

WIDE = (1e-4, 1e4)
objectives = pytest.mark.parametrize("objective", ["marginal", "elbo"])


def mercer_statistics(seed: int, rows: int = 60, rank: int = 8, noise: float = 0.1) -> Statistics:
    X = random_inputs(seed, rows, 2)
    return feature_statistics(MercerMap(Gaussian([0.8, 1.5]), [1.0, 1.0], rank), X, random_target(X, seed, noise))


def negative(unit: Statistics, objective: str, sf2: float, g: float) -> float:
    scaled, s2 = unit.scaled(sf2), g * sf2
    return -(elbo(scaled, trace_gap(scaled), s2) if objective == "elbo" else log_evidence(scaled, s2))


def brute_force(unit: Statistics, objective: str, bounds: tuple[float, float]) -> float:
    """Nelder-Mead from the best points of a grid over (log sf2, log g)."""
    low, high = np.log(bounds)
    grid = [(a, b) for a in np.linspace(-8.0, 8.0, 33) for b in np.linspace(low, high, 33)]
    starts = sorted(grid, key=lambda t: negative(unit, objective, *np.exp(t)))[:2]
    box = [(-30.0, 30.0), (low, high)]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 800}
    runs = [
        minimize(lambda t: negative(unit, objective, *np.exp(t)), s, method="Nelder-Mead", bounds=box, options=options)
        for s in starts
    ]
    return min(float(run.fun) for run in runs)


@objectives
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("bounds", [WIDE, (0.5, 20.0), (1e-4, 1e-3)], ids=["interior", "lower", "upper"])
def test_equals_brute_force_over_both_variances(objective, seed, bounds):
    unit = mercer_statistics(seed)
    found = profile_evidence(unit, objective, bounds)
    best = brute_force(unit, objective, bounds)
    assert abs(found.value - best) < 1e-7 * (1.0 + abs(best))
    assert bounds[0] * (1.0 - 1e-9) <= found.noise_variance / found.signal_variance <= bounds[1] * (1.0 + 1e-9)


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(5, 80),
    rank=st.integers(1, 30),
    noise=st.floats(1e-5, 10.0),
    objective=st.sampled_from(["marginal", "elbo"]),
)
@settings(deadline=None, derandomize=True, max_examples=25)
def test_value_is_attained_and_no_grid_point_is_better(seed, rows, rank, noise, objective):
    unit = mercer_statistics(seed, rows, rank, noise)
    found = profile_evidence(unit, objective)
    g = found.noise_variance / found.signal_variance
    attained = negative(unit, objective, found.signal_variance, g)
    assert abs(found.value - attained) < 1e-8 * (1.0 + abs(attained))
    for log_factor in (-0.3, -0.01, 0.01, 0.3):
        shifted = found.signal_variance * np.exp(log_factor)
        assert negative(unit, objective, shifted, g) > attained
    grid = np.geomspace(*WIDE, 25)
    slack = 1e-8 * (1.0 + abs(attained))
    assert all(profile_evidence(unit, objective, (h, h * (1.0 + 1e-12))).value > attained - slack for h in grid)


@objectives
@pytest.mark.parametrize("bounds", [WIDE, (0.5, 20.0), (1e-4, 1e-3)], ids=["interior", "lower", "upper"])
def test_gradient_in_the_statistics(objective, bounds):
    """Envelope theorem: the derivative of the profiled value, also where the noise ratio is held by its bound."""
    unit = mercer_statistics(3, rank=5)
    found = profile_evidence(unit, objective, bounds)
    i, j = np.tril_indices(unit.rank)

    def by_gram(lower):
        A = unit.A.clone()
        A[i, j] = tensor(lower)
        A[j, i] = tensor(lower)
        return profile_evidence(replace(unit, A=A), objective, bounds).value

    def by_projection(b):
        return profile_evidence(replace(unit, b=tensor(b)), objective, bounds).value

    G = found.by_gram.numpy()
    expected = central_differences(by_gram, unit.A.numpy()[i, j], 1e-3)
    np.testing.assert_allclose(np.where(i == j, G[i, j], 2.0 * G[i, j]), expected, rtol=1e-5, atol=1e-8)
    expected = central_differences(by_projection, unit.b.numpy(), 1e-3)
    np.testing.assert_allclose(found.by_projection.numpy(), expected, rtol=1e-5, atol=1e-8)


@objectives
def test_bounds_hold_where_the_data_would_go_beyond(objective):
    """A target without noise drives the ratio to its lower bound, pure noise to its upper one."""
    X = random_inputs(4, 100, 1)
    features = MercerMap(Gaussian([1.0]), [1.0], 15)
    smooth = feature_statistics(features, X, torch.sin(X[:, 0]))
    noise = feature_statistics(features, X, tensor(np.random.default_rng(5).standard_normal(100)))
    for unit, bounds, edge in [(smooth, (0.2, 10.0), 0.2), (noise, (1e-4, 0.01), 0.01)]:
        found = profile_evidence(unit, objective, bounds)
        np.testing.assert_allclose(found.noise_variance / found.signal_variance, edge, rtol=1e-9)


def two_explanations(weak_amplitude: float) -> Statistics:
    """One strong feature and 25 weak ones that explain the rest: little noise and much noise are both local optima."""
    eigenvalues = tensor([466.0] + [0.0055] * 25)
    amplitudes = tensor([20.5] + [weak_amplitude] * 25)
    yty = float(amplitudes.square().sum()) + 42.0
    return Statistics(torch.diag(eigenvalues), eigenvalues.sqrt() * amplitudes, yty, 55, 55.0)


@pytest.mark.parametrize("weak_amplitude", [1.75, 1.8, 1.85, 1.9, 2.0, 2.2])
def test_finds_the_better_of_two_optima(weak_amplitude):
    unit = two_explanations(weak_amplitude)
    grid = np.geomspace(*WIDE, 801)
    values = np.array([negative(unit, "marginal", _best_signal(unit, g), g) for g in grid])
    interior = values[1:-1]
    assert ((interior < values[:-2]) & (interior < values[2:])).sum() == 2  # the landscape is as promised
    found = profile_evidence(unit, "marginal")
    assert found.value <= values.min() + 1e-9
    np.testing.assert_allclose(found.noise_variance / found.signal_variance, grid[values.argmin()], rtol=0.05)


def _best_signal(unit: Statistics, g: float) -> float:
    """argmin over sf2 at a given noise ratio, for a diagonal A."""
    return (unit.yty - float((unit.b.square() / (unit.A.diagonal() + g)).sum())) / (g * unit.n)


def test_scale_of_the_target_scales_both_variances():
    unit = mercer_statistics(6)
    scaled = Statistics(unit.A, 5.0 * unit.b, 25.0 * unit.yty, unit.n, unit.kernel_trace)
    first, second = profile_evidence(unit, "elbo"), profile_evidence(scaled, "elbo")
    np.testing.assert_allclose(second.signal_variance, 25.0 * first.signal_variance, rtol=1e-8)
    np.testing.assert_allclose(second.noise_variance, 25.0 * first.noise_variance, rtol=1e-8)
    np.testing.assert_allclose(second.value, first.value + unit.n * np.log(5.0), rtol=1e-10)


# -------------------- exact GP


def exact_problem() -> tuple[torch.Tensor, torch.Tensor]:
    X = random_inputs(7, 20, 2)
    return Gaussian(0.9)(X, X), random_target(X, 7)


def test_exact_profile_is_the_minimum_over_the_signal_variance():
    R, y = exact_problem()
    found = profile_exact_evidence(R, y, 0.2)
    np.testing.assert_allclose(
        found.value, -exact_log_evidence(found.signal_variance * R, y, 0.2 * found.signal_variance), rtol=1e-12
    )
    for factor in (0.5, 0.99, 1.01, 2.0):
        sf2 = factor * found.signal_variance
        assert -exact_log_evidence(sf2 * R, y, 0.2 * sf2) > found.value


def test_exact_profile_gradient():
    R, y = exact_problem()
    found = profile_exact_evidence(R, y, 0.2)
    numeric = central_differences(
        lambda t: profile_exact_evidence(R, y, float(np.exp(t[0]))).value, np.log([0.2]), 1e-3
    )
    np.testing.assert_allclose(found.by_log_ratio, numeric[0], rtol=1e-7)
    direction = tensor(np.random.default_rng(8).standard_normal((20, 20)))
    direction = direction + direction.mT
    numeric = central_differences(
        lambda t: profile_exact_evidence(R + float(t[0]) * direction, y, 0.2).value, np.zeros(1), 1e-4
    )
    np.testing.assert_allclose(float((found.by_correlation * direction).sum()), numeric[0], rtol=1e-6)
