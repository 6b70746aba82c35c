"""Choosing features anew by evidence, between two optimiser runs: index sets of Mercer models, inducing points."""

from __future__ import annotations

import numpy as np
import torch

from certgp.data import ChunkSource, RowSource
from certgp.engines import Engine, one_thread_below
from certgp.engines.folds import fold_any_features, fold_any_statistics
from certgp.features import MercerMap, NystromMap, optimal_indices
from certgp.gp import BasisPool, LowRankModel, greedy_selection
from certgp.gp.outputs import AnyProfile, at_common_noise, profile_any
from certgp.transforms import Transform

_POOL_ROWS = 10_000
_POOL_FACTOR = {"elbo": 3, "marginal": 10}  # pool size in multiples of the rank (docs/decisions/0002)
_LARGEST_POOL = 2_000
_EXCHANGE_ROWS, _NEWCOMERS = 20_000, 1_000  # rows on which exchanges are judged, rows that may become inducing points
_LEAST_GAIN, _MOST_EXCHANGES = 1e-6, 50  # what one must bring per row; at a time, so that a large rank costs no hour


@torch.no_grad()
def reselect_indices(
    transform: Transform,
    features: MercerMap,
    rank: int,
    source: RowSource,
    engine: Engine,
    objective: str,
    rng: np.random.Generator,
) -> None:
    """Replace the index set of a model's features by the greedy choice from the largest eigenvalues at the current
    parameters.

    The variances at which gains are compared are those of the current set; the pool is read on at most 10,000 rows.
    """
    model = LowRankModel(transform, features)
    rows = source if source.n_rows <= _POOL_ROWS else ChunkSource(source.sample(_POOL_ROWS, rng))
    current = _profile(model, rows, engine, objective)
    size = max(rank, min(_POOL_FACTOR[objective] * rank, _LARGEST_POOL))
    candidates = optimal_indices(features.expansion.ratio.numpy(), size)
    features.set_indices(candidates)
    pool = at_common_noise(fold_any_features(model, rows, engine), current)
    best = greedy_selection(pool.statistics, rank, pool.signal_variance, pool.noise_variance, objective)
    features.set_indices(candidates[best])


@torch.no_grad()
def exchange_inducing_points(
    transform: Transform,
    features: NystromMap,
    source: RowSource,
    engine: Engine,
    objective: str,
    rng: np.random.Generator,
) -> int:
    """Move inducing points that are hardly missed to rows where they are worth more; how many moved.

    A gradient moves a point only as far as its length-scale reaches, so points stay where the start put them, two where
    one would do and none where one is wanted. Judged on at most 20,000 rows, at the current parameters and variances.
    """
    model = LowRankModel(transform, features)
    rows = ChunkSource(source.sample(min(_EXCHANGE_ROWS, source.n_rows), rng))  # in float64 whatever the source's type
    current = _profile(model, rows, engine, objective)
    newcomers = transform(source.sample(_NEWCOMERS, rng).X)
    points = torch.cat([features.inducing_points, newcomers])
    everyone = NystromMap(features.kernel, points, jitter=features.jitter)
    common = at_common_noise(fold_any_statistics(LowRankModel(transform, everyone), rows, engine), current)
    before = np.arange(features.rank)
    with one_thread_below(features.rank):
        pool = BasisPool(common.statistics, everyone.prior(), common.signal_variance, common.noise_variance, objective)
        after = pool.exchange(before, _LEAST_GAIN * rows.n_rows, min(features.rank, _MOST_EXCHANGES))
    features.inducing_points.copy_(points[torch.from_numpy(after)])
    moved = _profile(model, rows, engine, objective)
    if not moved.value < current.value:
        features.inducing_points.copy_(points[: features.rank])  # the gain was rounding
        return 0
    return int((after != before).sum())


def _profile(model: LowRankModel, rows: RowSource, engine: Engine, objective: str) -> AnyProfile:
    """The objective on some rows at the best variances."""
    return profile_any(fold_any_features(model, rows, engine), objective)
