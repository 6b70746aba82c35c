"""Passes over all rows that a model asks an engine for."""

from __future__ import annotations

import torch

from certgp.data import Chunk, RowSource
from certgp.engines.base import Engine
from certgp.gp import LowRankModel, Statistics


def fold_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Fold 1: statistics of the raw basis over all chunks."""

    @torch.no_grad()
    def task(chunk: Chunk) -> Statistics:
        return Statistics.of(model.basis(chunk.X), chunk.y, model.diagonal(chunk.X), chunk.weight)

    return engine.fold(task, source, model.width)


def fold_feature_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Statistics of the features themselves: for Nystrom more accurate than mixing the raw ones, at one more solve a
    chunk.
    """

    @torch.no_grad()
    def task(chunk: Chunk) -> Statistics:
        return Statistics.of(model(chunk.X), chunk.y, model.diagonal(chunk.X), chunk.weight)

    return engine.fold(task, source, model.width)
