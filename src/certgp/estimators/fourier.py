"""FourierGP: regression on random Fourier features."""

from __future__ import annotations

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import (
    LowRankParameters,
    ManyRowsParameters,
    ObjectiveParameters,
    SharedParameters,
    StartParameters,
)
from certgp.training.recipes import FourierRecipe, Settings, StagedTrainer


class FourierGP(
    ManyRowsParameters, ObjectiveParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor
):
    """Fourier GP (the paper's FGP): rank-r regression on cos/sin pairs at frequencies of the kernel's spectral law.

    Parameters
    ----------
    rank : number of features, two per frequency; an odd rank is rounded down; or "auto" (see ``MercerGP``)
    sampling : "auto" (orthogonal), "iid", "orthogonal", "sobol", "widened", "leverage" or "modified" (see the docs)
    learn_frequencies : also learn the frequencies (sparse spectrum GP): more accurate, but no longer an approximation
        of the kernel, so outside the paper's Theorem 2
    winsorize : pull inputs beyond the .1 and 99.9 % points of each column to these, in fit and predict: waves do not
        decay, so a single far-out row would ruin the predictions around it. With rank="auto" beyond the range of the
        training rows, so that none of these moves: certificates compare with the exact GP on the rows as they are
    kernel : a kernel with a spectral law: "gaussian", "matern12", "matern32", "matern52" or such a kernel object
    objective : "marginal"; the ELBO needs features dominated by the kernel
    variance : "lowrank" (random features lose no prior variance on average) or "paper", which does not fall back to the
        prior where inputs were winsorised

    Notes
    -----
    All other parameters are those of ``MercerGP``.
    """

    sampling: str = "auto"
    learn_frequencies: bool = False
    winsorize: bool = True
    objective: str = "marginal"
    variance: str = "lowrank"
    max_iter: int = 200

    def trainer(self, settings: Settings) -> StagedTrainer:
        return StagedTrainer(FourierRecipe(self.sampling, self.learn_frequencies, self.winsorize), settings)
