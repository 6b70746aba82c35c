"""The rows as the kernel sees them: outputs of a network for all rows, and a head that is fitted to them.

A row's embedding has d numbers, fewer than the row itself, so all of them are kept while a network of a thousand times
as many activations sees one block of rows at a time.
"""

from __future__ import annotations

import torch

from certgp.data import Chunk, ChunkSource, RowSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap
from certgp.gp import LowRankModel, Profile, profile_evidence
from certgp.gp.outputs import of_one_output
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import LowRankObjective
from certgp.transforms import Identity, Network

_BLOCK_ROWS = 65_536  # the network itself takes smaller ones


@torch.no_grad()
def raw_outputs(network: Network, source: RowSource) -> Chunk:
    """h(x) (N, d) of all rows before standardisation, with targets and weights; the network is left in eval mode."""
    network.eval()
    return Chunk.join([chunk.with_inputs(network.raw(chunk.X)) for chunk in source.chunks(_BLOCK_ROWS)])


def head_model(features: FeatureMap) -> LowRankModel:
    """The features alone, on rows that are already embedded; it shares their parameters."""
    return LowRankModel(Identity(features.dimension), features)


def fit_head(features: FeatureMap, embedded: Chunk, objective: str, max_iter: int) -> Profile:
    """Length-scales by L-BFGS with the embedding held, signal variance and noise in closed form.

    ``max_iter=0`` finds the variances alone.
    """
    rows = ChunkSource(embedded.to(torch.float64))
    target = LowRankObjective(head_model(features), rows, LocalEngine(), objective)
    if max_iter > 0:
        minimise(target, max_iter=max_iter, rank=features.rank)
    return profile_evidence(of_one_output(target.folds.statistics()), objective)
