"""ExactGP: the oracle, at any size."""

from __future__ import annotations

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import SharedParameters, StartParameters
from certgp.training.recipes import ExactTrainer, Settings


class ExactGP(StartParameters, SharedParameters, GPRegressor):
    """The exact GP: the truth that the others approximate.

    Parameters
    ----------
    solver : "dense" is O(N^3) time and O(N^2) memory, for a few thousand rows. "iterative" holds no N x N matrix: near
        rows choose the hyper-parameters (the exact likelihood of some rows may overrule them), conjugate gradients on
        the exact kernel matrix then give every mean to a proven ``tolerance``, and variances are those given the 100
        nearest rows, which ``certify`` brackets. "auto" is dense up to 10,000 rows, where memory allows
    tolerance : of solver "iterative": the proven error of any mean, in standard deviations of y
    kernel : any kernel: a name or a kernel object, also a sum or a product
    max_iter : optimiser iterations
    length_scale, signal_variance, noise_variance, optimize : see ``StartParameters``
    standardize, noise, likelihood, calibrate, random_state, verbose, callbacks, max_seconds : see ``SharedParameters``

    Notes
    -----
    An iterative fit of more than ten seconds announces its cost on stderr before it solves.
    """

    solver: str = "auto"
    tolerance: float = 0.01

    def trainer(self, settings: Settings) -> ExactTrainer:
        return ExactTrainer(settings, self.solver, self.tolerance)
