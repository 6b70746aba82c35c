"""Bounds on means cover what the computed weights are off by, against solutions in exact rational arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from certgp.gp import LowRankPosterior, Statistics
from certgp.guarantees import pointwise, pointwise_bounds
from certgp.guarantees.rounding import weights_error

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
