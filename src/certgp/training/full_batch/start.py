"""Where a fit starts: length-scales at which the model already explains something."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import nn

from certgp.data import RowSource
from certgp.engines import Engine
from certgp.gp import LowRankModel
from certgp.training.full_batch.objective import ExactObjective, LowRankObjective

FACTORS = (1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 8.0)  # the first wins ties


@torch.no_grad()
def scan_length_scales(
    lengths: Sequence[nn.Parameter], value: Callable[[], float], factors: Sequence[float] = FACTORS
) -> None:
    """Multiply all lengths, given by their logarithms, by the factor of the lowest value, one evaluation each.

    Gradients lead to the nearest optimum, and two false ones are near a bad start: everything is noise (the ELBO at
    length-scales too short for the rank), or everything is trend (any objective at length-scales too long).
    """
    starts = [length.detach().clone() for length in lengths]

    def value_at(factor: float) -> float:
        for length, start in zip(lengths, starts, strict=True):
            length.copy_(start + math.log(factor))
        return value()

    if lengths:
        value_at(min(factors, key=value_at))


def choose_starting_scale(
    model: LowRankModel,
    source: RowSource,
    engine: Engine,
    objective: str,
    factors: Sequence[float] = FACTORS,
) -> None:
    """Scan the length-scales of a low-rank model; the index set of Mercer features follows."""
    features, rank = model.features, model.rank

    def value() -> float:
        features.choose_indices(rank)
        return LowRankObjective(model, source, engine, objective).profile().value

    scan_length_scales(features.lengths(), value, factors)


def choose_exact_starting_scale(objective: ExactObjective) -> None:
    """Scan the length-scales of an exact GP at its starting noise ratio."""
    scan_length_scales(objective.module.lengths(), objective.value)
