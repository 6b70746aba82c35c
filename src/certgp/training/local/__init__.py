"""How local GPs learn: the likelihood of some rows given their neighbours, and the noise on many rows."""

from certgp.training.local.full_scale import JITTER, FullScaleObjective, LowRankPart, pick_earlier
from certgp.training.local.metric import LinearMetric, Metric, NetworkMetric, ScaledMetric
from certgp.training.local.network import train_network
from certgp.training.local.noise import fit_noise, profiled_loss
from certgp.training.local.objective import LocalObjective, TargetRows, pick_targets, row_losses
from certgp.training.local.prior import SignalPrior

__all__ = [
    "JITTER",
    "FullScaleObjective",
    "LinearMetric",
    "LocalObjective",
    "LowRankPart",
    "Metric",
    "NetworkMetric",
    "ScaledMetric",
    "SignalPrior",
    "TargetRows",
    "fit_noise",
    "pick_earlier",
    "pick_targets",
    "profiled_loss",
    "row_losses",
    "train_network",
]
