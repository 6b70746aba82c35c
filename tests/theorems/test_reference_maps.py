"""Which maps references are made of, and that the better ones are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import certgp
from certgp.data.sources import Chunk, ChunkSource
from certgp.engines.local import LocalEngine
from certgp.features import MercerMap, NystromMap, ResidualMap, data_mercer_map, mean_gap
from certgp.gp import LowRankModel
from certgp.guarantees import Problem, growing_references, reference_features
from certgp.guarantees.reference_maps import ReferenceMaps, complete_map
from certgp.kernels import Gaussian, Kernel, Matern32
from certgp.transforms import Identity


def normal(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def problem_of(kernel: Kernel, X: torch.Tensor) -> Problem:
    model = LowRankModel(Identity(X.shape[1]), NystromMap(kernel, X[:5]))
    rows = ChunkSource(Chunk(X, torch.zeros(len(X), dtype=torch.float64)))
    return Problem(model, 1.0, 0.1, rows, LocalEngine())


def test_eigenfunctions_in_one_dimension_and_points_in_many():
    """By rows that neither was chosen on; in many dimensions points leave a fraction of what eigenfunctions do."""
    line = ReferenceMaps(Gaussian(1.0), normal(500, 1), normal(500, 1, 1), 60)
    assert isinstance(line.of_rank(60), MercerMap)
    # inputs of eight columns near a surface of two dimensions, as those of real data are
    mix = normal(2, 8, 5)
    inputs = [torch.sin(normal(1_000, 2, seed) @ mix) for seed in (2, 3)]
    kernel = Gaussian(1.0)
    features = ReferenceMaps(kernel, *inputs, 150).of_rank(150)
    assert isinstance(features, NystromMap)
    assert mean_gap(features, inputs[1]) < 0.1 * mean_gap(data_mercer_map(kernel, inputs[0], 150), inputs[1])


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Matern32(0.3)], ids=["gaussian", "matern32"])
def test_a_reference_at_all_rows_is_the_exact_gp(kernel):
    X = normal(200, 4)
    features = reference_features(kernel, X, 200)
    assert features.rank <= 200
    assert mean_gap(features, X) < 2e-8


def some_points(kernel: Kernel, X: torch.Tensor) -> NystromMap:
    return NystromMap(kernel, X[:56], jitter=1e-8)


@pytest.mark.parametrize(
    ("kernel", "build", "kind"),
    [
        (Gaussian(1.0), some_points, NystromMap),
        (Matern32(2.0), some_points, NystromMap),
        (Gaussian(1.0), lambda kernel, X: data_mercer_map(kernel, X, 49), ResidualMap),
    ],
    ids=["gaussian points", "matern points", "eigenfunctions"],
)
def test_rows_far_out_get_points_of_their_own(kernel, build, kind):
    X, far = normal(400, 2), [7, 300, 399]
    X[far] += torch.tensor([[40.0, 0.0], [0.0, 60.0], [-50.0, 3.0]])
    features = build(kernel, X[10:200])
    problem = problem_of(kernel, X)
    full, left = complete_map(features, problem.model, problem.source, problem.engine, 56)
    assert isinstance(full, kind)
    assert full.rank <= 56
    assert mean_gap(features, X[far]) > 0.99
    assert mean_gap(full, X[far]) < 1e-7
    assert mean_gap(full, X[:7]) < 2.0 * mean_gap(features, X[:7]) + 1e-3
    assert 400 * mean_gap(full, X) <= left + 400 * 1e-7
    assert left < 400 * mean_gap(features, X) - 2.5


def test_points_on_single_rows_do_not_replace_those_that_explain_the_others():
    """Ten inputs 200 times each and 60 scattered ones: there is room for all of them."""
    X = torch.cat([normal(10, 2).repeat(200, 1), 100.0 * normal(60, 2, 1)])
    problem = problem_of(Matern32(1.0), X)
    features = NystromMap(Matern32(1.0), torch.cat([X[:10], X[2_000:2_020]]), jitter=1e-8)
    full, left = complete_map(features, problem.model, problem.source, problem.engine, 320)
    assert len(X) * mean_gap(features, X) > 30
    assert left < 1.0
    assert len(X) * mean_gap(full, X) < 1.0


@pytest.mark.parametrize("rank", [60, 240, 479, 2_000])
def test_more_features_than_rows_are_the_exact_gp(rank):
    """However large the reference: rows far out are a part of the rows, not all of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    fixed = {"length_scale": 1.0, "signal_variance": 1.0, "noise_variance": 0.05, "optimize": False}
    gp = certgp.FourierGP(20, random_state=0, **fixed).fit(X, X[:, 0])
    certificate = gp.certify(reference_rank=rank)
    assert certificate.kl.upper - certificate.kl.lower < 1e-4


def test_a_single_row_has_a_reference():
    features = reference_features(Gaussian(1.0), normal(1, 2), 8)
    assert mean_gap(features, normal(1, 2)) < 1e-6


def test_the_same_map_is_not_read_twice():
    """Greedy points end with the distinct rows; a larger rank that brings no more of them is passed over."""
    X = normal(30, 5).repeat(4, 1)
    read = list(growing_references(problem_of(Gaussian(0.2), X), 40, 320, lambda gap: True, np.random.default_rng(0)))
    assert [reference.features.rank for reference in read] == [30]
    assert read[0].half_width < 120 * 1e-6


def test_intervals_in_many_dimensions_are_narrow():
    """Through eigenfunctions alone this interval was [0, .951] nats a row, through points [.33924, .33926]."""
    rng = np.random.default_rng(4)
    X = np.sin(rng.standard_normal((1_200, 2)) @ rng.standard_normal((2, 8)))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(1_200)
    gp = certgp.FourierGP(
        40, length_scale=1.0, signal_variance=1.0, noise_variance=0.1, optimize=False, standardize=False, random_state=0
    ).fit(X, y)
    certificate = gp.certify(reference_rank=300)
    assert certificate.kl.upper - certificate.kl.lower < 0.01 * certificate.kl.upper
