"""DeepFourierGP: a network in front of a Fourier GP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import nn

from certgp.estimators.deep import DeepRegressor
from certgp.estimators.validation import (
    OBJECTIVES,
    VARIANCES,
    StartingValues,
    capped_rank,
    check_choice,
    check_minorising,
)
from certgp.features import FourierMap
from certgp.features.spectral import spectral_design
from certgp.kernels import Kernel
from certgp.training import Callback

SAMPLINGS = ("auto", "iid", "orthogonal", "sobol", "widened")  # those that need no rows, which move in training


class DeepFourierGP(DeepRegressor):
    """Deep Fourier GP (the paper's DFGP): random Fourier features on the outputs g(x) of a network.

    Parameters
    ----------
    rank : number of features, two per frequency; an odd rank is rounded down. Or "auto": the network is trained at rank
        40, and with it held the GP gets as many features as it takes to prove KL(exact || model) / N <= ``tolerance``,
        where "exact" is the GP on g(x)
    tolerance, max_rank : for ``rank="auto"``: nats per row, and where the search ends with a warning
    embedding : d, the number of outputs of the network; they are standardised before the kernel sees them
    hidden : widths of the hidden layers of the default network (tanh); () makes it linear
    network : a ``torch.nn.Module`` that maps rows (n, D) of standardised inputs to (n, embedding), instead of the
        default network. It is copied, never changed; its weights are where training starts.
    sampling : "auto" (orthogonal), "iid" (the paper's), "orthogonal", "sobol" or "widened"; drawn once and kept
    kernel : "gaussian", "matern12", "matern32", "matern52" or a kernel object with starting values
    objective : "marginal"; the ELBO needs features below the kernel
    variance : "lowrank"; random features lose no prior variance on average
    length_scale, signal_variance, noise_variance : starting values, length-scales in units of the standardised
        embedding; kept with the network as it starts when ``optimize=False``
    training, max_iter, batch_size, learning_rate, shrinkage, validation_fraction, patience, members, calibrate,
        checkpoint : as in ``DeepMercerGP``
    standardize, dtype, engine, cap_rank, random_state, verbose, callbacks : as in ``DeepMercerGP``
    """

    _default_rank = 40  # the paper's

    def __init__(
        self,
        rank: int | Literal["auto"] = 40,
        *,
        tolerance: float = 1e-3,
        max_rank: int = 1_000,
        embedding: int = 4,
        hidden: Sequence[int] = (512, 256, 64),
        network: nn.Module | None = None,
        sampling: str = "auto",
        kernel: str | Kernel = "gaussian",
        objective: str = "marginal",
        variance: str = "lowrank",
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
        self.sampling = sampling
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
        check_minorising("objective", self.objective, "elbo", OBJECTIVES, "DeepFourierGP")
        check_minorising("variance", self.variance, "dtc", VARIANCES, "DeepFourierGP")
        check_choice("sampling", self.sampling, SAMPLINGS)

    def _usable_rank(self, rank: object) -> int:
        return capped_rank(rank, self._summary.distinct_rows, self.cap_rank, multiple=2)

    def _features(self, start: StartingValues, rank: int, rng: np.random.Generator) -> FourierMap:
        sampling = "orthogonal" if self.sampling == "auto" else self.sampling
        return FourierMap(start.kernel, spectral_design(sampling, start.kernel, rank // 2, self.embedding, rng))
