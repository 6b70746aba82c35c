"""An embedding for local GPs: a network trained on the likelihood of rows given their neighbours in it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from certgp.training.local.metric import NetworkMetric
from certgp.training.local.objective import LocalObjective, TargetRows
from certgp.training.parameters import ParameterVector

_BATCH, _BATCHES = 256, 16  # targets a step, but so many steps an epoch at least
_RATE, _SHRINKAGE = 2e-3, 1e-3
_BETAS = (0.9, 0.99)


def train_network(
    metric: NetworkMetric,
    epochs: int,
    fresh: Callable[[], TargetRows],
    after_epoch: Callable[[int, float], bool],
) -> None:
    """Adam with decoupled weight decay on small batches of targets, the rate falling to zero along a cosine.

    ``fresh`` draws the targets of an epoch with their neighbours in the embedding of the moment; ``after_epoch`` sees
    the epoch's number and mean loss and ends the training by returning True.
    """
    parameters = ParameterVector(metric)
    optimiser = torch.optim.AdamW(metric.parameters(), lr=_RATE, betas=_BETAS, weight_decay=_SHRINKAGE)
    for epoch in range(epochs):
        data = fresh()
        n = len(data.targets)
        batches = min(n, max(_BATCHES, math.ceil(n / _BATCH)))
        losses = []
        for batch, rows in enumerate(np.array_split(np.arange(n), batches)):
            for group in optimiser.param_groups:
                group["lr"] = 0.5 * _RATE * (1.0 + math.cos(math.pi * (epoch + batch / batches) / epochs))
            objective = LocalObjective(metric, data.part(slice(rows[0], rows[-1] + 1)))
            value, gradient = objective.evaluate(objective.start())
            parameters.set_gradient(gradient)
            optimiser.step()
            metric.clip_variances()
            losses.append(value)
        if after_epoch(epoch, float(np.mean(losses))):
            break
