"""DeepMercerGP: a network in front of a Mercer GP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import nn

from certgp.estimators.deep import DeepRegressor
from certgp.estimators.validation import StartingValues, check_choice
from certgp.features import MercerMap
from certgp.kernels import Kernel
from certgp.training import Callback

INDEX_SETS = ("optimal", "box")


class DeepMercerGP(DeepRegressor):
    """Deep Mercer GP (the paper's DMGP): eigenfunctions of the Gaussian kernel on the outputs g(x) of a network.

    Parameters
    ----------
    rank : number of eigenfunctions, or "auto": the network is trained at rank 15, and with it held the GP gets as many
        as it takes to prove KL(exact || model) / N <= ``tolerance``, where "exact" is the GP on g(x)
    tolerance, max_rank : for ``rank="auto"``: nats per row, and where the search ends with a warning
    embedding : d, the number of outputs of the network; they are standardised before the kernel sees them
    hidden : widths of the hidden layers of the default network (tanh); () makes it linear
    network : a ``torch.nn.Module`` that maps rows (n, D) of standardised inputs to (n, embedding), instead of the
        default network. It is copied, never changed; its weights are where training starts.
    index_set : products of one-dimensional eigenfunctions to keep: "optimal" (largest eigenvalues) or "box" (the
        paper's); with embedding=1 they are the same
    kernel : "gaussian" or a Gaussian kernel object with starting values
    objective : "marginal" (the paper's likelihood) or "elbo"
    variance : "dtc" adds the prior variance lost by truncation, "lowrank" is the paper's model
    length_scale, signal_variance, noise_variance : starting values, length-scales in units of the standardised
        embedding; kept with the network as it starts when ``optimize=False``
    training : "running" (small steps with running statistics of all rows), "full" (L-BFGS on the exact gradient of all
        rows) or "paper" (pre-training on squared error, then the likelihood of each batch for itself; no held-out rows)
    max_iter : epochs, or L-BFGS iterations with training="full"
    batch_size : rows per step; smaller where there are few rows
    learning_rate : of the network; length-scales and variances have one of their own
    shrinkage : weight decay: weights would shrink by exp(-shrinkage) over the fit if no gradient held them
    validation_fraction : share of the training rows on which the best epoch and the noise are chosen
    patience : stop after so many validations (one every two epochs) without a better one; None runs all epochs
    members : number of networks, with seeds and held-out rows of their own; predictions are the mixture of theirs. They
        are trained side by side, in processes of one thread each and as many as torch may use threads, unless the fit
        is short or has callbacks, ``verbose`` or an engine of its own: then one after the other. A callback that stops
        the fit keeps the members that are done, or the first one as far as it came.
    calibrate : scale the predictive noise up (``noise_scale_``) where held-out rows ask for it
    standardize, dtype, engine, cap_rank, random_state, verbose, callbacks : as in ``MercerGP``; callbacks are called
        after every epoch. Training itself runs in float32; ``dtype`` is that of the fitted model.
    checkpoint : file in which training is saved every other epoch and from which an interrupted fit goes on; it is
        removed when the fit is done
    """

    _default_rank = 15  # the paper's

    def __init__(
        self,
        rank: int | Literal["auto"] = 15,
        *,
        tolerance: float = 1e-3,
        max_rank: int = 1_000,
        embedding: int = 1,
        hidden: Sequence[int] = (512, 256, 64),
        network: nn.Module | None = None,
        index_set: str = "optimal",
        kernel: str | Kernel = "gaussian",
        objective: str = "marginal",
        variance: str = "dtc",
        length_scale: float | Sequence[float] | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        optimize: bool = True,
        training: str = "running",
        max_iter: int = 40,
        batch_size: int = 250,
        learning_rate: float = 4e-3,
        shrinkage: float = 0.5,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        members: int = 1,
        calibrate: bool = True,
        standardize: bool = True,
        dtype: str = "float64",
        engine: Any = "local",
        checkpoint: str | Path | None = None,
        cap_rank: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.rank = rank
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.embedding = embedding
        self.hidden = hidden
        self.network = network
        self.index_set = index_set
        self.kernel = kernel
        self.objective = objective
        self.variance = variance
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.training = training
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.members = members
        self.calibrate = calibrate
        self.standardize = standardize
        self.dtype = dtype
        self.engine = engine
        self.checkpoint = checkpoint
        self.cap_rank = cap_rank
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("index_set", self.index_set, INDEX_SETS)

    def _features(self, start: StartingValues, rank: int, rng: np.random.Generator) -> MercerMap:
        features = MercerMap(start.kernel, np.ones(self.embedding), rank, self.index_set)
        features.log_input_scale.requires_grad_(False)  # the embedding is standardised: its measure is N(0, 1)
        return features
