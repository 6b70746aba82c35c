"""Re-choosing the index set of a Mercer model by evidence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, MercerMap
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.training.full_batch import selection as selection_module
from certgp.training.full_batch.selection import reselect_indices
from certgp.transforms import Identity
from helpers import objective_value, random_inputs, random_target

X = random_inputs(0, 120, 2)
SOURCE = ChunkSource(Chunk(X, random_target(X, 0)))


def model_of(features: FeatureMap | None = None) -> LowRankModel:
    return LowRankModel(Identity(2), features or MercerMap(Gaussian([0.7, 2.0]), [1.0, 1.0], 15))


def reselect(model: LowRankModel, objective: str, rank: int = 15, seed: int = 0) -> None:
    reselect_indices(
        model.transform, model.features, rank, SOURCE, LocalEngine(), objective, np.random.default_rng(seed)
    )


def value_of(model: LowRankModel, objective: str) -> float:
    return objective_value(model, SOURCE, objective)


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_the_new_set_is_better_has_distinct_indices_and_the_rank_asked_for(objective):
    model = model_of()
    before = value_of(model, objective)
    reselect(model, objective)
    assert value_of(model, objective) < before
    assert model.rank == 15
    assert len(np.unique(model.features.indices.numpy(), axis=0)) == 15


@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_the_new_set_is_still_dominated(objective):
    model = model_of()
    reselect(model, objective)
    with torch.no_grad():
        phi = model(X)
        gap = model.correlation(X, X) - phi @ phi.mT
    assert float(torch.linalg.eigvalsh(gap).min()) >= -1e-9


def test_the_rank_may_change():
    model = model_of()
    reselect(model, "elbo", rank=6)
    assert model.rank == 6


def test_a_subsample_is_read_where_rows_are_many(monkeypatch):
    monkeypatch.setattr(selection_module, "_POOL_ROWS", 40)
    sets = []
    for seed in (1, 1):
        model = model_of()
        reselect(model, "elbo", seed=seed)
        sets.append(model.features.indices)
    assert torch.equal(*sets)
