"""ExactGP: the oracle."""

from __future__ import annotations

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import SharedParameters, StartParameters
from certgp.training.recipes import ExactTrainer, Settings


class ExactGP(StartParameters, SharedParameters, GPRegressor):
    """The exact GP: O(N^3) time and O(N^2) memory, for a few thousand rows and as the truth that the others
    approximate.

    Parameters
    ----------
    kernel : any kernel: a name or a kernel object, also a sum or a product
    max_iter : optimiser iterations
    length_scale, signal_variance, noise_variance, optimize : see ``StartParameters``
    standardize, calibrate, random_state, verbose, callbacks : see ``SharedParameters``
    """

    def trainer(self, settings: Settings) -> ExactTrainer:
        return ExactTrainer(settings)
