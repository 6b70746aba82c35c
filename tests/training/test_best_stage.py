"""Stages: the fit ends at the best point it saw on its last rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import MercerMap
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective, Stage, run_stages
from certgp.transforms import Identity


def test_a_last_stage_that_makes_things_worse_is_undone() -> None:
    """A spoiled index set before the final run must not be what the fit ends with."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((300, 2)))
    rows = ChunkSource(Chunk(X, torch.sin(2 * X[:, 0])))
    features = MercerMap(Gaussian([1.0, 1.0]), np.ones(2), 20)
    model = LowRankModel(Identity(2), features)
    good = features.indices.clone()

    def spoil() -> None:
        features.set_indices(np.array([[0, k] for k in range(20)]))

    stages = [Stage(rows, 20), Stage(rows, 1, spoil)]
    result = run_stages(model, stages, LocalEngine(), "marginal")
    assert torch.equal(features.indices, good)
    objective = LowRankObjective(model, rows, LocalEngine(), "marginal")
    assert objective.evaluate(objective.start())[0] == pytest.approx(result.value, rel=1e-9)
    assert result.value == min(result.history.values)
