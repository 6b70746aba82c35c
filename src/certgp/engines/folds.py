"""Passes over all rows that a model asks an engine for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines.base import Engine
from certgp.gp import LowRankModel, Statistics
from certgp.gp.outputs import AnyStatistics, of_one_output, statistics_of


def fold_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Fold 1: statistics of the raw basis over all chunks."""
    return of_one_output(fold_any_statistics(model, source, engine))


def fold_feature_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Statistics of the features themselves: for Nystrom more accurate than mixing the raw ones, at one more solve a
    chunk.
    """
    return of_one_output(fold_any_features(model, source, engine))


def fold_any_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> AnyStatistics:
    """``fold_statistics`` of rows with one target or several."""
    return _fold(model, model.basis, source, engine)


def fold_any_features(model: LowRankModel, source: RowSource, engine: Engine) -> AnyStatistics:
    """``fold_feature_statistics`` of rows with one target or several."""
    return _fold(model, model, source, engine)


def _fold(
    model: LowRankModel, evaluate: Callable[[Tensor], Tensor], source: RowSource, engine: Engine
) -> AnyStatistics:
    @torch.no_grad()
    def task(chunk: Chunk) -> AnyStatistics:
        return statistics_of(evaluate(chunk.X), chunk.y, model.diagonal(chunk.X), chunk.weight)

    return engine.fold(task, source, model.width)
