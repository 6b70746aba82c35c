"""How local GPs learn: the likelihood of some rows given their neighbours, and the noise on many rows."""

from certgp.training.local.metric import LinearMetric, Metric, ScaledMetric
from certgp.training.local.noise import fit_noise, profiled_loss
from certgp.training.local.objective import LocalObjective, TargetRows, pick_targets, row_losses

__all__ = [
    "LinearMetric",
    "LocalObjective",
    "Metric",
    "ScaledMetric",
    "TargetRows",
    "fit_noise",
    "pick_targets",
    "profiled_loss",
    "row_losses",
]
