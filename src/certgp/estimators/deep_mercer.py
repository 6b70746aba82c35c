"""DeepMercerGP: a network in front of a Mercer GP."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Literal

import numpy as np

from certgp.checks import check_choice
from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import DeepParameters, LowRankParameters, SharedParameters, StartParameters
from certgp.features import MercerMap
from certgp.training.recipes import DeepTrainer, Settings, Start

INDEX_SETS = ("optimal", "box")
_DEFAULT_RANK = 15  # the paper's


class DeepMercerGP(DeepParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor):
    """Deep Mercer GP (the paper's DMGP): eigenfunctions of the Gaussian kernel on the outputs g(x) of a network.

    Parameters
    ----------
    rank : number of eigenfunctions, or "auto": the network is trained at rank 15, and with it held the GP gets as many
        as it takes to prove KL(exact || model) / N <= ``tolerance``, where "exact" is the GP on g(x)
    embedding : d, the number of outputs of the network; they are standardised before the kernel sees them
    index_set : products of one-dimensional eigenfunctions to keep: "optimal" (largest eigenvalues) or "box" (the
        paper's); with embedding=1 they are the same
    kernel : "gaussian" or a Gaussian kernel object with starting values
    objective : "marginal" (the paper's likelihood) or "elbo"
    variance : "dtc" adds the prior variance lost by truncation (so does the paper's released code), "lowrank" only
        outside the range of the training inputs, "paper" nowhere: the model of the paper's text itself
    calibrate : scale the predictive noise up (``noise_scale_``) where held-out rows ask for it
    length_scale, signal_variance, noise_variance : starting values, length-scales in units of the standardised
        embedding; kept with the network as it starts when ``optimize=False``
    hidden, network, training, max_iter, batch_size, learning_rate, shrinkage, validation_fraction, patience, members :
        see ``DeepParameters``
    tolerance, max_rank, dtype, engine, checkpoint, cap_rank : see ``LowRankParameters``. Training itself runs in
        float32; ``dtype`` is that of the fitted model. A checkpoint is written every other epoch.
    standardize, noise, likelihood, random_state, verbose, callbacks, max_seconds : see ``SharedParameters``;
        callbacks are called after every epoch
    """

    rank: int | Literal["auto"] = field(default=_DEFAULT_RANK, kw_only=False)
    embedding: int = 1
    index_set: str = "optimal"
    objective: str = "marginal"
    variance: str = "dtc"
    calibrate: bool = True

    def trainer(self, settings: Settings) -> DeepTrainer:
        check_choice("index_set", self.index_set, INDEX_SETS)
        build = partial(_build_head, self.embedding, self.index_set)
        return DeepTrainer(self.deep_recipe(build, 1, _DEFAULT_RANK, self.embedding, self.calibrate), settings)


def _build_head(embedding: int, index_set: str, start: Start, rank: int, rng: np.random.Generator) -> MercerMap:
    features = MercerMap(start.kernel, np.ones(embedding), rank, index_set)
    features.log_input_scale.requires_grad_(False)  # the embedding is standardised: its measure is N(0, 1)
    return features
