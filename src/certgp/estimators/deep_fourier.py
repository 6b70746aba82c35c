"""DeepFourierGP: a network in front of a Fourier GP."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Literal

import numpy as np

from certgp.checks import check_choice
from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import DeepParameters, LowRankParameters, SharedParameters, StartParameters
from certgp.features import FourierMap
from certgp.features.spectral import spectral_design
from certgp.training.recipes import DeepTrainer, Settings, Start
from certgp.training.recipes.settings import check_needs_domination

SAMPLINGS = ("auto", "iid", "orthogonal", "sobol", "widened")  # those that need no rows, which move in training
_DEFAULT_RANK = 40  # the paper's


class DeepFourierGP(DeepParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor):
    """Deep Fourier GP (the paper's DFGP): random Fourier features on the outputs g(x) of a network.

    Parameters
    ----------
    rank : number of features, two per frequency; an odd rank is rounded down. Or "auto": the network is trained at rank
        40, and with it held the GP gets as many features as it takes to prove KL(exact || model) / N <= ``tolerance``,
        where "exact" is the GP on g(x)
    embedding : d, the number of outputs of the network; they are standardised before the kernel sees them
    sampling : "auto" (orthogonal), "iid" (the paper's), "orthogonal", "sobol" or "widened"; drawn once and kept
    kernel : a kernel with a spectral law: "gaussian", "matern12", "matern32", "matern52" or such a kernel object
    objective : "marginal"; the ELBO needs features dominated by the kernel
    variance : "lowrank" or "paper", which are alike here; random features lose no prior variance on average

    Notes
    -----
    All other parameters are those of ``DeepMercerGP``.
    """

    rank: int | Literal["auto"] = field(default=_DEFAULT_RANK, kw_only=False)
    embedding: int = 4
    sampling: str = "auto"
    objective: str = "marginal"
    variance: str = "lowrank"
    calibrate: bool = True

    def trainer(self, settings: Settings) -> DeepTrainer:
        check_needs_domination(settings, "DeepFourierGP")
        check_choice("sampling", self.sampling, SAMPLINGS)
        build = partial(_build_head, self.embedding, self.sampling)
        return DeepTrainer(self.deep_recipe(build, 2, _DEFAULT_RANK, self.embedding, self.calibrate), settings)


def _build_head(embedding: int, sampling: str, start: Start, rank: int, rng: np.random.Generator) -> FourierMap:
    sampling = "orthogonal" if sampling == "auto" else sampling
    return FourierMap(start.kernel, spectral_design(sampling, start.kernel, rank // 2, embedding, rng))
