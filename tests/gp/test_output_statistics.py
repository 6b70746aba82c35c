"""Several outputs over the same features against one dense GP each, with missing numbers and weights."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_any_features, fold_any_statistics
from certgp.features import MercerMap, NystromMap
from certgp.gp import LowRankModel, Statistics, greedy_selection, profile_evidence
from certgp.gp.outputs import OutputStatistics, at_common_noise, profile_outputs, shared_blocks, statistics_of
from certgp.kernels import Gaussian
from certgp.training.full_batch.objective import LowRankObjective
from certgp.transforms import Identity
from helpers import central_differences

RNG = np.random.default_rng(8)
N, Q = 90, 3
X = torch.from_numpy(RNG.standard_normal((N, 2)))
W = torch.from_numpy(np.exp(RNG.standard_normal(N)))
WHOLE = torch.stack([torch.sin(2.0 * X.sum(1)), X[:, 0] ** 2, X[:, 1]], 1) + 0.3 * torch.from_numpy(
    RNG.standard_normal((N, Q))
)


def without(which: np.ndarray) -> torch.Tensor:
    return torch.where(torch.from_numpy(which), math.nan, WHOLE)


PATTERNS = {
    "none missing": WHOLE,
    "one column half missing": without(np.outer(np.arange(N) % 2 == 0, [False, True, False])),
    "any missing": without(RNG.random((N, Q)) < 0.3),
}
MAPS = {
    "mercer": lambda: MercerMap(Gaussian([1.1, 0.8]), [1.0, 1.0], 9),
    "nystrom": lambda: NystromMap(Gaussian([1.1, 0.8]), X[:9].clone()),
}
every_pattern = pytest.mark.parametrize("pattern", PATTERNS)
every_weight = pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])


def model_of(name: str) -> LowRankModel:
    return LowRankModel(Identity(2), MAPS[name]())


def one_by_one(model: LowRankModel, Y: torch.Tensor, weight: torch.Tensor | None) -> list[Statistics]:
    with torch.no_grad():
        phi = model(X)
    seen = [~Y[:, j].isnan() for j in range(Q)]
    return [
        Statistics.of(phi[rows], Y[rows, j], weight=None if weight is None else weight[rows])
        for j, rows in enumerate(seen)
    ]


@every_pattern
def test_blocks_hold_every_observed_number_once(pattern: str) -> None:
    Y = PATTERNS[pattern]
    counts = torch.zeros(Y.shape)
    for outputs, rows in shared_blocks(Y):
        picked = torch.arange(N)[rows]
        counts[picked[:, None], torch.tensor(outputs)] += 1
    assert torch.equal(counts, (~Y.isnan()).to(counts.dtype))


def test_rows_of_few_patterns_are_in_one_block_each_and_many_patterns_need_one_for_each_output() -> None:
    few = shared_blocks(PATTERNS["one column half missing"])
    assert sorted(outputs for outputs, _ in few) == [(0, 1, 2), (0, 2)]
    many = shared_blocks(PATTERNS["any missing"])
    assert sorted(outputs for outputs, _ in many) == [(0,), (1,), (2,)]


@every_weight
@every_pattern
def test_statistics_are_those_of_each_output_alone(pattern: str, weight: torch.Tensor | None) -> None:
    model, Y = model_of("mercer"), PATTERNS[pattern]
    found = fold_any_features(model, ChunkSource(Chunk(X, Y, weight)), LocalEngine(chunk_rows=17))
    assert isinstance(found, OutputStatistics)
    assert len(found.designs) <= max(Q, 2)
    for j, expected in enumerate(one_by_one(model, Y, weight)):
        mine = found.output(j)
        assert mine.close_to(expected, 1e-12)
        assert mine.kernel_trace == pytest.approx(expected.kernel_trace, rel=1e-12)


def test_outputs_of_the_same_rows_share_one_gram_matrix() -> None:
    phi = model_of("mercer")(X).detach()
    found = statistics_of(phi, PATTERNS["one column half missing"], None, None)
    assert sorted(found.groups) == [(0, 2), (1,)]
    assert found.output(0).A is found.output(2).A


def test_order_and_chunks_do_not_matter() -> None:
    phi, Y = model_of("mercer")(X).detach(), PATTERNS["any missing"]
    whole = OutputStatistics.of(phi, Y)
    for parts in (torch.arange(N).split(7), torch.randperm(N, generator=torch.Generator().manual_seed(0)).split(31)):
        merged = reduce(add, (OutputStatistics.of(phi[rows], Y[rows]) for rows in parts))
        assert all(merged.output(j).close_to(whole.output(j), 1e-12) for j in range(Q))


@pytest.mark.parametrize("objective", ["marginal", "elbo"])
@every_weight
@every_pattern
def test_profile_is_the_sum_of_the_outputs(pattern: str, weight: torch.Tensor | None, objective: str) -> None:
    model, Y = model_of("mercer"), PATTERNS[pattern]
    with torch.no_grad():
        found = profile_outputs(statistics_of(model(X), Y, None, weight), objective)
    alone = [profile_evidence(stats, objective) for stats in one_by_one(model, Y, weight)]
    assert found.value == pytest.approx(sum(each.value for each in alone), rel=1e-12)
    np.testing.assert_allclose([b.signal_variance for b in found.best], [a.signal_variance for a in alone], rtol=1e-9)
    np.testing.assert_allclose([b.noise_variance for b in found.best], [a.noise_variance for a in alone], rtol=1e-9)
    assert found.count == int((~Y.isnan()).sum())
    for j, each in enumerate(alone):
        np.testing.assert_allclose(found.cotangents.by_projection[:, j], each.by_projection, rtol=1e-8, atol=1e-10)
    total = sum(found.cotangents.by_gram.values()) if len(found.cotangents.by_gram) > 1 else None
    expected = sum(each.by_gram for each in alone)
    first = total if total is not None else next(iter(found.cotangents.by_gram.values()))
    np.testing.assert_allclose(first, expected, rtol=1e-8, atol=1e-8)


@every_weight
def test_value_is_the_log_density_of_all_targets_by_dense_algebra(weight: torch.Tensor | None) -> None:
    model, Y = model_of("mercer"), PATTERNS["any missing"]
    with torch.no_grad():
        phi = model(X)
        found = profile_outputs(statistics_of(phi, Y, None, weight), "marginal")
    noise = np.ones(N) if weight is None else 1.0 / weight.numpy()
    total = 0.0
    for j, best in enumerate(found.best):
        rows = ~Y[:, j].isnan().numpy()
        own = phi.numpy()[rows]
        covariance = best.signal_variance * own @ own.T + best.noise_variance * np.diag(noise[rows])
        total += multivariate_normal(np.zeros(rows.sum()), covariance).logpdf(Y.numpy()[rows, j])
    assert found.value == pytest.approx(-total, rel=1e-9)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("objective", ["marginal", "elbo"])
@every_weight
def test_gradient_is_that_of_central_differences(name: str, objective: str, weight: torch.Tensor | None) -> None:
    rows = ChunkSource(Chunk(X, PATTERNS["any missing"], weight))
    target = LowRankObjective(model_of(name), rows, LocalEngine(chunk_rows=23), objective)
    start = target.start()
    _, gradient = target.evaluate(start)
    expected = central_differences(lambda values: target.evaluate(values)[0], start, 1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


@every_pattern
def test_mixed_raw_statistics_are_those_of_the_features(pattern: str) -> None:
    model, rows = model_of("nystrom"), ChunkSource(Chunk(X, PATTERNS[pattern]))
    raw, whole = (fold(model, rows, LocalEngine()) for fold in (fold_any_statistics, fold_any_features))
    with torch.no_grad():
        mixed = raw.mixed(model.features.mixing())
    assert all(mixed.output(j).close_to(whole.output(j), 1e-7) for j in range(Q))


def test_equal_outputs_choose_the_features_that_one_would() -> None:
    phi = model_of("mercer")(X).detach()
    y = WHOLE[:, 0]
    both = statistics_of(phi, torch.stack([y, 3.0 * y], 1), None, None)
    common = at_common_noise(both, profile_outputs(both, "elbo"))
    one = Statistics.of(phi, y)
    best = profile_evidence(one, "elbo")
    expected = greedy_selection(one, 5, best.signal_variance, best.noise_variance, "elbo")
    found = greedy_selection(common.statistics, 5, common.signal_variance, common.noise_variance, "elbo")
    assert found.tolist() == expected.tolist()
