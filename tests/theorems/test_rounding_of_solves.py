"""Bounds on means cover what the computed weights are off by, against solutions in exact rational arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import certgp
from certgp.data.sources import Chunk, ChunkSource
from certgp.engines.local import LocalEngine
from certgp.features import NystromMap
from certgp.gp import LowRankModel, LowRankPosterior, Statistics
from certgp.gp.kernel_products import BLOCK
from certgp.guarantees import ExactSystem, Problem, pointwise, pointwise_bounds, read_reference, reference_features
from certgp.guarantees.kernel_products import entries_rounding, kernel_product
from certgp.guarantees.rounding import weights_error
from certgp.kernels import Gaussian
from certgp.transforms import Identity

N, RANK, NEW = 40, 4, 5


def unit_features(rng: np.random.Generator, count: int, collinear: float) -> torch.Tensor:
    """Rows of length one: nothing is lost at any row, so a model with them is exact and only rounding is left."""
    features = collinear * rng.standard_normal((count, RANK)) + 1.0
    return torch.from_numpy(features / np.linalg.norm(features, axis=1, keepdims=True))


def rational_weights(features: torch.Tensor, y: torch.Tensor, noise: float) -> list[Fraction]:
    """(Phi'Phi + s2 I)^-1 Phi'y by elimination without rounding."""
    rows = [[Fraction(value) for value in row] for row in features.tolist()]
    targets = [Fraction(value) for value in y.tolist()]
    system = [[sum(row[i] * row[j] for row in rows) for j in range(RANK)] for i in range(RANK)]
    for i in range(RANK):
        system[i][i] += Fraction(noise)
        system[i].append(sum(row[i] * target for row, target in zip(rows, targets, strict=True)))
    for i in range(RANK):
        system[i] = [value / system[i][i] for value in system[i]]
        for j in set(range(RANK)) - {i}:
            system[j] = [a - system[j][i] * b for a, b in zip(system[j], system[i], strict=True)]
    return [row[-1] for row in system]


def errors_of_means(means: torch.Tensor, features: torch.Tensor, weights: list[Fraction]) -> torch.Tensor:
    exact = [sum(Fraction(a) * w for a, w in zip(row, weights, strict=True)) for row in features.tolist()]
    found = [Fraction(value) for value in means.tolist()]
    return torch.tensor([float(abs(a - b)) for a, b in zip(found, exact, strict=True)], dtype=torch.float64)


@pytest.mark.parametrize("collinear", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("noise", [1e-1, 1e-6, 1e-12])
@pytest.mark.parametrize("seed", range(5))
def test_means_of_ill_conditioned_systems_are_within_their_bounds(collinear, noise, seed):
    rng = np.random.default_rng(seed)
    features, new = unit_features(rng, N, collinear), unit_features(rng, NEW, collinear)
    y = torch.from_numpy(rng.standard_normal(N))
    bounds = pointwise_bounds(Statistics.of(features, y), new, 1.0, noise)
    assert torch.isfinite(bounds.mean_error).all()
    assert (errors_of_means(bounds.mean, new, rational_weights(features, y, noise)) <= bounds.mean_error).all()


@pytest.mark.parametrize("seed", range(5))
def test_weights_that_are_wrong_are_noticed(seed, monkeypatch):
    """A solve that errs by 1e-6 widens the bound by as much, and by not much more."""
    rng = np.random.default_rng(seed)
    features, new = unit_features(rng, N, 1.0), unit_features(rng, NEW, 1.0)
    y, noise = torch.from_numpy(rng.standard_normal(N)), 0.1
    stats = Statistics.of(features, y)
    right = LowRankPosterior.condition(stats, noise)
    off = torch.from_numpy(1e-6 * rng.standard_normal(RANK))
    wrong = replace(right, weights=right.weights + off)
    monkeypatch.setattr(pointwise.LowRankPosterior, "condition", staticmethod(lambda *_: wrong))
    bounds = pointwise_bounds(stats, new, 1.0, noise)
    errors = errors_of_means(bounds.mean, new, rational_weights(features, y, noise))
    assert (errors <= bounds.mean_error).all()
    distance = float(torch.sqrt(off @ (stats.A + noise * torch.eye(RANK, dtype=torch.float64)) @ off))
    assert weights_error(stats, wrong) == pytest.approx(distance, rel=1e-3)
    assert weights_error(stats, right) < 1e-9


def test_nothing_to_explain_is_known_exactly_at_any_noise():
    features = unit_features(np.random.default_rng(0), N, 1e-6)
    bounds = pointwise_bounds(Statistics.of(features, torch.zeros(N, dtype=torch.float64)), features, 1.0, 1e-13)
    assert (bounds.mean == 0.0).all()
    assert (bounds.mean_error == 0.0).all()


@pytest.mark.parametrize("noise", [1e-8, 1e-10, 1e-12])
def test_little_noise_leaves_bounds_on_means_finite(noise):
    X = np.linspace(-3.0, 3.0, 1_000)[:, None]
    fixed = {"length_scale": 1.0, "signal_variance": 1.0, "noise_variance": noise, "optimize": False}
    gp = certgp.SparseGP(30, standardize=False, random_state=0, **fixed).fit(X, np.sin(X[:, 0]))
    assert np.isfinite(gp.certify(X[:5]).mean_error).all()


def test_dual_weights_that_are_wrong_are_noticed(monkeypatch):
    """P4 with weights that a solve got wrong by one part in a hundred, against the dense mean."""
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.uniform(-2, 2, (80, 1)))
    y = torch.from_numpy(np.sin(3.0 * X[:, 0].numpy()) + 0.1 * rng.standard_normal(80))
    kernel, noise = Gaussian(0.5), 0.1
    model = LowRankModel(Identity(1), NystromMap(kernel, X[:5]))
    problem = Problem(model, 1.0, noise, ChunkSource(Chunk(X, y)), LocalEngine())
    system = ExactSystem(read_reference(problem, reference_features(kernel, X, 80)), Chunk(X, y))
    new = torch.linspace(-2.0, 2.0, 9, dtype=torch.float64)[:, None]
    K = kernel(X, X) + noise * torch.eye(80, dtype=torch.float64)
    exact = kernel(new, X) @ torch.linalg.solve(K, y)
    right = system.reference_solution()
    off = 1.0 + 0.01 * torch.from_numpy(rng.standard_normal(80))
    solve = ExactSystem._precondition
    monkeypatch.setattr(ExactSystem, "_precondition", lambda self, v: off * solve(self, v))
    wrong = system.reference_solution()
    assert right.residual < 1e-4
    explained = (1.0 - system.bounds(right, new).variance_lower).clamp_min(0.0).sqrt()
    for solution in (right, wrong):
        error = (kernel(new, X) @ solution.weights - exact).abs()
        assert (error <= explained * solution.residual + 1e-12).all()
    assert float((kernel(new, X) @ wrong.weights - exact).abs().max()) > 100.0 * right.residual


@pytest.mark.parametrize("compiled", [True, False])
def test_entries_of_products_are_bounded_block_by_block(compiled):
    """Rows on a circle of 95 length-scales fill the first block, and one further out is alone in the second.

    From the centre of all rows the kernel's own code would take differences, which round less than the products that it
    takes from the centre of the first block. Compiled loops take differences in any case.
    """
    angle = np.linspace(0.0, 2.0 * np.pi, BLOCK, endpoint=False)
    rows = np.vstack([95.0 * np.column_stack([np.cos(angle), np.sin(angle)]), [[110.0, 0.0]]])
    X, own = torch.from_numpy(rows), Gaussian([1.0, 1.0])
    half = Gaussian([1.0, 1.0], 0.5)
    kernel = own if compiled else half + half
    found = kernel_product(kernel, X, torch.eye(len(X), dtype=torch.float64)).numpy()
    wide = rows.astype(np.longdouble)
    exact = np.exp(-0.5 * np.square(wide[:, None] - wide[None]).sum(2))
    error = float(np.abs(found - exact).max())
    assert error <= entries_rounding(kernel, X)
    assert error > (1e-2 * entries_rounding(kernel, X) if compiled else 2.0 * kernel.rounding(X))
