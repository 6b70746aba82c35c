"""Where a fit starts: length-scales at which the model already explains something."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from certgp.data import RowSource
from certgp.engines import Engine
from certgp.features import MercerMap
from certgp.gp import LowRankModel, NoiseRatioBounds
from certgp.training.objective import LowRankObjective

FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)


@torch.no_grad()
def choose_starting_scale(
    model: LowRankModel,
    source: RowSource,
    engine: Engine,
    objective: str,
    noise_bounds: NoiseRatioBounds,
    factors: Sequence[float] = FACTORS,
) -> None:
    """Multiply all length-scales by the factor of the best objective, one evaluation each.

    The ELBO has a false optimum where everything is noise; from length-scales too short for the rank the gradient
    leads there. Its value at longer ones tells them apart.
    """
    features = model.features
    start, rank = features.log_length_scale.detach().clone(), model.rank

    def value_at(factor: float) -> float:
        features.log_length_scale.copy_(start + math.log(factor))
        if isinstance(features, MercerMap):
            features.choose_indices(rank)
        return LowRankObjective(model, source, engine, objective, noise_bounds).profile().value

    best = min(factors, key=value_at)
    value_at(best)
