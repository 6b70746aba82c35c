"""Greedy selection takes, at every step, the feature that raises the objective most: checked by trying them all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.features import MercerMap
from certgp.gp import Statistics, elbo, greedy_selection, log_evidence
from certgp.gp.evidence import trace_gap
from certgp.kernels import Gaussian
from helpers import feature_statistics, random_inputs, random_target

SF2, S2 = 1.4, 0.15


def pool_of(seed: int, size: int = 20) -> Statistics:
    X = random_inputs(seed, 60, 2)
    return feature_statistics(MercerMap(Gaussian([0.6, 1.5]), [1.0, 1.0], size), X, random_target(X, seed))


def value(pool: Statistics, subset: list[int], objective: str) -> float:
    pick = torch.tensor(subset)
    scaled = Statistics(pool.A[pick][:, pick], pool.b[pick], pool.yty, pool.n, pool.kernel_trace).scaled(SF2)
    return elbo(scaled, trace_gap(scaled), S2) if objective == "elbo" else log_evidence(scaled, S2)


@given(seed=st.integers(0, 1000), objective=st.sampled_from(["elbo", "marginal"]))
@settings(deadline=None, derandomize=True, max_examples=10)
def test_every_step_takes_the_best_feature(seed, objective):
    pool = pool_of(seed)
    chosen = [int(k) for k in greedy_selection(pool, 8, SF2, S2, objective)]
    assert len(set(chosen)) == 8
    for step in range(8):
        candidates = [k for k in range(pool.rank) if k not in chosen[:step]]
        values = [value(pool, [*chosen[:step], k], objective) for k in candidates]
        assert value(pool, chosen[: step + 1], objective) > max(values) - 1e-8 * (1.0 + abs(max(values)))


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_no_worse_than_the_largest_eigenvalues(objective):
    pool = pool_of(3, 40)
    chosen = [int(k) for k in greedy_selection(pool, 10, SF2, S2, objective)]
    assert value(pool, chosen, objective) >= value(pool, list(range(10)), objective) - 1e-9


def test_choosing_everything_is_a_permutation():
    pool = pool_of(4)
    np.testing.assert_array_equal(np.sort(greedy_selection(pool, pool.rank, SF2, S2, "elbo")), np.arange(pool.rank))
