"""LocalGP: every prediction from the nearest rows, at any size."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import SharedParameters, StartParameters
from certgp.kernels import Kernel
from certgp.training.recipes import LocalRecipe, LocalTrainer, Settings


class LocalGP(StartParameters, SharedParameters, GPRegressor):
    """A GP that conditions every row on a few near rows (Vecchia 1988): the accuracy of the exact GP where it varies
    over short distances, in time that hardly grows with the number of rows.

    Parameters
    ----------
    neighbours : training rows that a prediction is conditioned on; all of them give the exact GP
    train_neighbours : neighbours of a row while hyper-parameters are learned, and in the law of the training targets,
        in which every row is conditioned on the nearest of the rows before it, in a random order
    kernel : a name, a kernel object, or "auto": the Matern kernel (1/2, 3/2 or 5/2) that predicts held-out training
        rows best
    metric : "ard" learns a length-scale per column; "linear" a linear map in front of the kernel, started from them;
        "auto" keeps the map where held-out training rows gain by it; "network" adds a neural network to the map,
        trained on the likelihood of rows given their neighbours in its embedding
    rank : features (inducing points) beside the neighbours: near rows then describe what the features leave, and all
        is trained on the evidence of both (Sang and Huang 2012). 0, none, was as good or better on four of five data
        sets (docs/decisions/0039)
    length_scale, signal_variance, noise_variance, optimize : see ``StartParameters``
    max_iter : most optimiser iterations, in rounds of 10 or 15 that see fresh rows each; below 120 the kernel is not
        chosen but Matern 3/2
    checkpoint : see ``LowRankParameters``; the epochs of metric="network" are run again
    standardize, noise, likelihood, calibrate, random_state, verbose, callbacks, max_seconds : see ``SharedParameters``

    Notes
    -----
    A fitted model holds the training rows, and so does its file: ``save(path, include_training_data=True)``.
    ``partial_fit`` puts new rows last in the order.
    """

    neighbours: int = field(default=100, kw_only=False)
    train_neighbours: int = 30
    kernel: str | Kernel = "auto"
    metric: str = "auto"
    rank: int = 0
    max_iter: int = 200
    checkpoint: str | Path | None = None

    def trainer(self, settings: Settings) -> LocalTrainer:
        return LocalTrainer(LocalRecipe(self.neighbours, self.train_neighbours, self.metric, self.rank), settings)
