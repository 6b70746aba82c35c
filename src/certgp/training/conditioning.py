"""Conditioning a fitted process on further rows: hyper-parameters, features and noise stay."""

from __future__ import annotations

import torch

from certgp.data import ReweightedSource, RowSource
from certgp.engines import Engine, fold_feature_statistics
from certgp.engines.local import default_chunk_rows
from certgp.gp import (
    GaussianProcess,
    LowRankProcess,
    MixtureProcess,
)
from certgp.gp.kinds import HoldsRows
from certgp.gp.student import StudentNoise


def condition_further(process: GaussianProcess, more: RowSource, engine: Engine) -> GaussianProcess:
    """The process given these standardised rows too. With Student-t noise each is weighed by what the process says of
    it before.
    """
    if isinstance(process, MixtureProcess):
        return process.with_members([condition_further(member, more, engine) for member in process.members])
    if isinstance(process.noise_model, StudentNoise):
        more = _weigh(process, process.noise_model, more)
    if isinstance(process, HoldsRows):
        rows = more.take(slice(None))
        return process.updated(rows.X, rows.y, rows.weight)
    if isinstance(process, LowRankProcess):
        return process.updated(fold_feature_statistics(process.model, more, engine))
    raise TypeError(f"a {type(process).__name__} cannot be extended")


def _weigh(process: GaussianProcess, noise: StudentNoise, more: RowSource) -> RowSource:
    """The rows with the weights that Student-t noise gives them."""
    factors = []
    for chunk in more.chunks(default_chunk_rows(process.rank)):
        mean, variance = process.moments(chunk.X)
        factors.append(noise.weigh(chunk.y.double() - mean, variance, chunk.weights()))
    return ReweightedSource(more, torch.cat(factors))
