"""Re-choosing the index set of a Mercer model by evidence, between two optimiser runs."""

from __future__ import annotations

import numpy as np
import torch

from certgp.data import ChunkSource, RowSource
from certgp.engines import Engine
from certgp.features import MercerMap, optimal_indices
from certgp.gp import LowRankModel, NoiseRatioBounds, greedy_selection, profile_evidence
from certgp.training.objective import fold_feature_statistics

_POOL_ROWS = 10_000
_POOL_FACTOR = {"elbo": 3, "marginal": 10}  # pool size in multiples of the rank (measured: docs/benchmarks.md)
_LARGEST_POOL = 2_000


@torch.no_grad()
def reselect_indices(
    model: LowRankModel,
    rank: int,
    source: RowSource,
    engine: Engine,
    objective: str,
    noise_bounds: NoiseRatioBounds,
    rng: np.random.Generator,
) -> None:
    """Replace the model's index set by the greedy choice from the largest eigenvalues at the current parameters.

    The variances at which gains are compared are those of the current set; the pool is read on at most 10,000 rows.
    """
    features = model.features
    if not isinstance(features, MercerMap):
        raise TypeError("only Mercer features have an index set")
    rows = source if source.n_rows <= _POOL_ROWS else ChunkSource(source.sample(_POOL_ROWS, rng))
    current = profile_evidence(fold_feature_statistics(model, rows, engine), objective, noise_bounds)
    size = max(rank, min(_POOL_FACTOR[objective] * rank, _LARGEST_POOL))
    candidates = optimal_indices(features.expansion.ratio.numpy(), size)
    features.set_indices(candidates)
    pool = fold_feature_statistics(model, rows, engine)
    best = greedy_selection(pool, rank, current.signal_variance, current.noise_variance, objective)
    features.set_indices(candidates[best])
