"""Exchanging basis functions: losses and gains are those of evaluating each neighbouring set anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.features import NystromMap
from certgp.gp import BasisPool, Statistics, elbo, log_evidence
from certgp.gp.evidence import trace_gap
from certgp.kernels import Gaussian
from helpers import feature_statistics, random_inputs, random_target

SF2, S2 = 1.4, 0.15
KERNEL = Gaussian([0.6, 1.5])
X = random_inputs(1, 80, 2)
Y = random_target(X, 1)
POINTS = torch.cat([random_inputs(2, 14, 2), X[:1]])
OBJECTIVES = ["elbo", "marginal"]


def pool_of(objective: str) -> BasisPool:
    everyone = NystromMap(KERNEL, POINTS)
    with torch.no_grad():
        return BasisPool(Statistics.of(everyone.basis(X), Y), everyone.prior(), SF2, S2, objective)


def value(subset: list[int], objective: str) -> float:
    """The objective of a sparse GP with these inducing points, by the library's own evidence."""
    stats = feature_statistics(NystromMap(KERNEL, POINTS[subset]), X, Y, SF2)
    return elbo(stats, trace_gap(stats), S2) if objective == "elbo" else log_evidence(stats, S2)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_are_those_of_leaving_a_function_out(objective):
    chosen = [0, 3, 4, 8, 11]
    found = 0.5 * pool_of(objective).losses(torch.tensor(chosen))
    full = value(chosen, objective)
    expected = [full - value([k for k in chosen if k != each], objective) for each in chosen]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gains_are_those_of_adding_a_function(objective):
    chosen = [0, 3, 4, 8, 11]
    found = 0.5 * pool_of(objective).gains(torch.tensor(chosen))
    full = value(chosen, objective)
    for k in range(len(POINTS)):
        if k in chosen:
            assert found[k] == -np.inf
        else:
            assert float(found[k]) == pytest.approx(value([*chosen, k], objective) - full, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_exchanges_raise_the_objective_until_the_least_missed_has_no_better_substitute(objective):
    start = [0, 1, 2, 3]
    ended = [int(k) for k in pool_of(objective).exchange(np.array(start), 1e-9, 50)]
    assert len(set(ended)) == len(start)
    assert value(ended, objective) > value(start, objective) + 0.1
    without = [[k for k in ended if k != each] for each in ended]
    least_missed = max(without, key=lambda rest: value(rest, objective))
    others = [k for k in range(len(POINTS)) if k not in ended]
    best = max(value([*least_missed, k], objective) for k in others)
    assert best <= value(ended, objective) + 1e-7


def test_a_twin_of_a_chosen_function_is_no_gain():
    twins = torch.cat([POINTS, POINTS[:1] + 1e-7])
    everyone = NystromMap(KERNEL, twins)
    with torch.no_grad():
        pool = BasisPool(Statistics.of(everyone.basis(X), Y), everyone.prior(), SF2, S2, "elbo")
    assert float(pool.gains(torch.tensor([0, 3]))[-1]) == -np.inf


def test_dependent_functions_without_jitter_leave_the_set_as_it_is():
    twins = torch.cat([POINTS[:2], POINTS[:2]])
    everyone = NystromMap(KERNEL, twins, jitter=0.0)
    with torch.no_grad():
        pool = BasisPool(Statistics.of(everyone.basis(X), Y), everyone.prior(), SF2, S2, "elbo")
    np.testing.assert_array_equal(pool.exchange(np.array([0, 2]), 0.0, 5), [0, 2])


def test_no_more_exchanges_than_allowed():
    pool = pool_of("elbo")
    start = np.array([0, 1, 2, 3])
    assert (pool.exchange(start, 1e-9, 1) != start).sum() == 1
    np.testing.assert_array_equal(pool.exchange(start, 1e9, 9), start)


@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_gains_survive_ill_conditioned_pools(noise):
    """Smooth functions with little noise: Schur complements by explicit inverses would be noise here, and negative."""
    rows = random_inputs(5, 2_000, 3)
    target = random_target(rows, 5)
    points = random_inputs(6, 160, 3)
    smooth = Gaussian([2.0, 2.0, 2.0])
    everyone = NystromMap(smooth, points)
    with torch.no_grad():
        pool = BasisPool(Statistics.of(everyone.basis(rows), target), everyone.prior(), 1.0, noise, "elbo")
    chosen = list(range(60))
    found = 0.5 * pool.gains(torch.tensor(chosen))

    def sparse_elbo(subset: list[int]) -> float:
        stats = feature_statistics(NystromMap(smooth, points[subset]), rows, target)
        return elbo(stats, trace_gap(stats), noise)

    best = sorted(range(len(points)), key=lambda k: -float(found[k]))[:5]
    full = sparse_elbo(chosen)
    for k in best:
        assert np.isfinite(float(found[k]))
        assert float(found[k]) == pytest.approx(sparse_elbo([*chosen, k]) - full, rel=0.05)
