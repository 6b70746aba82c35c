"""The full-data objective with signal variance and noise among its parameters, for optimisers that move all at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certgp.data import RowSource
from certgp.engines import Engine
from certgp.gp import EvidenceGradient, LowRankModel, Statistics, evidence_gradient
from certgp.training import Objective
from certgp.training.full_batch.two_folds import TwoFolds

Array = NDArray[np.float64]
_VARIANCES = ("log_signal_variance", "log_noise_variance")
_VARIANCE_BOUNDS = (math.log(1e-6), math.log(1e6))


class JointObjective(Objective):
    """Negative log evidence or ELBO per row as a function of (log sf2, log s2, parameters of the model).

    ``LowRankObjective`` maximises the two variances out instead (docs/decisions/0009); this is for training as others
    do it.
    """

    def __init__(
        self,
        model: LowRankModel,
        source: RowSource,
        engine: Engine,
        objective: str,
        signal_variance: float,
        noise_variance: float,
    ) -> None:
        self.model, self.source, self.engine, self.objective = model, source, engine, objective
        self._folds = TwoFolds(model, source, engine)
        self._log_variances = np.log([signal_variance, noise_variance])

    @property
    def variances(self) -> tuple[float, float]:
        """Signal variance and noise variance at the current parameters."""
        signal, noise = np.exp(self._log_variances)
        return float(signal), float(noise)

    def start(self) -> Array:
        return np.concatenate([self._log_variances, self._folds.parameters.get()])

    def bounds(self) -> list[tuple[float, float]]:
        return [_VARIANCE_BOUNDS] * len(_VARIANCES) + self._folds.parameters.bounds()

    def labels(self) -> list[str]:
        """For every parameter, the name of what it belongs to."""
        return [*_VARIANCES, *self._folds.parameters.labels()]

    def move_to(self, values: Array) -> None:
        self._log_variances = values[: len(_VARIANCES)].copy()
        self._folds.parameters.set(values[len(_VARIANCES) :])

    def sharpen(self) -> bool:
        return self._folds.sharpen()

    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        found, by_model = self._folds.differentiate(self._criterion)
        gradient = np.concatenate([[found.by_log_signal, found.by_log_noise], by_model])
        return found.value / self.source.n_rows, gradient / self.source.n_rows

    def _criterion(self, statistics: Statistics) -> EvidenceGradient:
        return evidence_gradient(statistics, *self.variances, self.objective)
