"""Moving inducing points to where they are worth more, between two optimiser runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp import SparseGP
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import NystromMap
from certgp.gp import BasisPool, LowRankModel
from certgp.kernels import Gaussian
from certgp.training import exchange_inducing_points
from certgp.training.recipes import sparse as sparse_module
from certgp.transforms import Identity
from helpers import objective_value


def waves(rows: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.from_numpy(np.random.default_rng(0).uniform(-3.0, 3.0, (rows, 2)))
    return X, torch.sin(4.0 * X[:, 0]) * torch.cos(3.0 * X[:, 1])


X, Y = waves()
SOURCE = ChunkSource(Chunk(X, Y))


def crowded(rank: int = 30) -> LowRankModel:
    """All points in one corner, a hundredth of what a gradient sees from the others."""
    corner = torch.from_numpy(np.random.default_rng(1).uniform(2.0, 3.0, (rank, 2)))
    return LowRankModel(Identity(2), NystromMap(Gaussian([0.5, 0.5]), corner))


def exchange(model: LowRankModel, objective: str = "elbo", seed: int = 0) -> int:
    return exchange_inducing_points(
        model.transform, model.features, SOURCE, LocalEngine(), objective, np.random.default_rng(seed)
    )


def value_of(model: LowRankModel, objective: str) -> float:
    return objective_value(model, SOURCE, objective)


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_points_leave_the_corner_and_the_objective_improves(objective):
    model = crowded()
    before = value_of(model, objective)
    assert exchange(model, objective) > 10
    assert value_of(model, objective) < before - 0.01
    assert (model.features.inducing_points < 2.0).any(1).sum() > 10


def test_the_points_stay_trainable_and_as_many():
    model = crowded()
    points = model.features.inducing_points
    exchange(model)
    assert model.features.inducing_points is points
    assert points.requires_grad
    assert points.shape == (30, 2)


def test_nothing_moves_where_nothing_is_gained():
    model = crowded()
    while exchange(model):
        pass
    before = model.features.inducing_points.detach().clone()
    assert exchange(model) == 0
    assert torch.equal(before, model.features.inducing_points)


def test_the_rows_of_the_points_are_drawn_by_the_seed():
    models = [crowded() for _ in range(2)]
    for model in models:
        exchange(model, seed=7)
    assert torch.equal(models[0].features.inducing_points, models[1].features.inducing_points)


def test_a_sparse_gp_ends_better_than_without_exchanges(monkeypatch):
    rows, target = X.numpy(), Y.numpy() + 0.1 * np.random.default_rng(2).standard_normal(len(Y))
    fitted = SparseGP(rank=30, max_iter=120, random_state=0).fit(rows, target)
    monkeypatch.setattr(sparse_module, "exchange_inducing_points", lambda *_: 0)
    without = SparseGP(rank=30, max_iter=120, random_state=0).fit(rows, target)
    assert fitted.history_.values[-1] < without.history_.values[-1] - 0.01


@pytest.mark.parametrize(
    ("options", "exchanged"), [({}, True), ({"learn_inducing": False}, False), ({"inducing": X[:20].numpy()}, False)]
)
def test_points_the_user_fixed_or_gave_are_not_exchanged(options, exchanged, monkeypatch):
    calls: list[int] = []
    monkeypatch.setattr(sparse_module, "exchange_inducing_points", lambda *_: calls.append(1) or 0)
    SparseGP(rank=20, max_iter=60, random_state=0, **options).fit(X.numpy(), Y.numpy())
    assert bool(calls) == exchanged


def test_an_exchange_that_gains_by_rounding_only_is_undone(monkeypatch):
    """Where the pool promises a gain that the rows do not confirm, the points stay."""
    model = crowded()
    while exchange(model):
        pass
    before = model.features.inducing_points.detach().clone()
    worse = np.arange(30)
    worse[:20] = 30 + np.arange(20)  # newcomers at random in the place of points that serve
    monkeypatch.setattr(BasisPool, "exchange", lambda *_: worse)
    assert exchange(model) == 0
    assert torch.equal(before, model.features.inducing_points)


def test_single_precision_rows_are_judged_in_double():
    """AutoGP(dtype="mixed") has a subsample in float32."""
    single = ChunkSource(Chunk(X.float(), Y.float()))
    model = crowded()
    moved = exchange_inducing_points(
        model.transform, model.features, single, LocalEngine(), "elbo", np.random.default_rng(0)
    )
    assert moved > 10
    assert model.features.inducing_points.dtype == torch.float64
