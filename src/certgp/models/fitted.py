"""A fitted process in the units of the data: what an estimator holds after ``fit`` and a file holds after ``save``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Rows, RowSource, Standardiser
from certgp.engines import Engine
from certgp.engines.local import default_chunk_rows
from certgp.gp import Box, GaussianProcess, LowRankProcess, Mixture, NoiseModel
from certgp.gp.process import check_dense
from certgp.gp.student import StudentNoise
from certgp.guarantees import Certificate
from certgp.kernels import Kernel
from certgp.training.conditioning import condition_further

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A process, the standardiser that leads back to the user's units, and the range of the training inputs."""

    process: GaussianProcess
    standardiser: Standardiser
    lower: Array  # (D,) least training input per column, a hundredth of the range further out
    upper: Array  # (D,) largest
    in_float64: bool = True  # were the statistics folded in float64, so that certificates cover their rounding?
    certificate: Certificate | None = None  # the tightest statement about the training rows so far
    rows: Rows | None = None  # of the fit, in the user's units; neither saved nor copied
    targets: tuple[float, float] | None = None  # ends of their range, likewise; files of before 0.2 have none

    def __post_init__(self) -> None:
        """Tell the processes the range of the training inputs."""
        lower, upper = (torch.from_numpy(self.standardiser.inputs(end[None])[0]) for end in (self.lower, self.upper))
        for member in self.process.members:
            member.box = Box(lower, upper)

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows: a pickled or deeply copied model is as small as a saved one."""
        return self.__dict__ | {"rows": None}

    @property
    def kernel(self) -> Kernel:
        """The kernel in the units of the data; behind a projection or a network in those of its outputs."""
        units, process = self.standardiser, self.process.members[0]
        mean, scale = units.x_mean, units.x_scale
        transform = process.transform
        if transform is not None and not transform.keeps_coordinates:
            mean, scale = np.zeros(transform.dimension), np.ones(transform.dimension)
        return process.kernel.to_user(mean, scale, units.y_scale)

    @property
    def noise_variance(self) -> float:
        """s2 in the squared units of y."""
        return self.process.noise_variance * self.standardiser.y_scale**2

    @property
    def certifies_itself(self) -> bool:
        """Can predictions be certified from what the model remembers alone?"""
        process = self.process
        return not isinstance(process, LowRankProcess) or process.model.dominated

    def row_weights(self) -> Array | None:
        """Weights of the rows of the fit (N,); None where all are one, or the rows are not known any more."""
        return None if self.rows is None else self.rows.weights(slice(None))

    def noise_models(self) -> NoiseModel | StudentNoise | tuple[NoiseModel | StudentNoise | None, ...] | None:
        """Of the process; of several members one each."""
        models = tuple(member.noise_model for member in self.process.members)
        return models[0] if len(models) == 1 else models

    def log_evidence(self) -> float:
        """Log density of the training targets in the units of y."""
        return self.process.log_evidence() + self.evidence_shift

    @property
    def evidence_shift(self) -> float:
        """What to add to a log density of all standardised targets to have it in the units of y."""
        return -self.process.n_rows * math.log(self.standardiser.y_scale)

    def tensor(self, X: NDArray[np.floating]) -> Tensor:
        """Rows (n, D) in the user's units, standardised."""
        return torch.from_numpy(self.standardiser.inputs(X))

    def member_moments(self, rows: Rows) -> tuple[Array, Array]:
        """Latent means and variances of the mixture's members, each (m, n), in the user's units, chunk by chunk."""
        members, start = self.process.members, 0
        means, variances = np.empty((len(members), rows.n_rows)), np.empty((len(members), rows.n_rows))
        for X, _ in rows.chunks(default_chunk_rows(self.process.rank)):
            inputs, part = self.tensor(X), slice(start, start + len(X))
            start += len(X)
            for i, member in enumerate(members):
                mean, variance = member.moments(inputs)
                means[i, part], variances[i, part] = mean.numpy(), variance.numpy()
        return self.standardiser.mean_to_user(means), self.standardiser.variance_to_user(variances)

    def latent(self, rows: Rows) -> Mixture:
        """The distribution of f at each row, in the user's units."""
        means, variances = self.member_moments(rows)
        return Mixture(means, variances, self.process.shares)

    def observations(self, rows: Rows) -> Mixture:
        """The distribution of a new observation at each row, in the user's units, chunk by chunk."""
        found = [
            Mixture.of_observations(self.process, self.tensor(X))
            for X, _ in rows.chunks(default_chunk_rows(self.process.rank))
        ]
        return self.in_user_units(Mixture.join(found))

    def in_user_units(self, found: Mixture) -> Mixture:
        """Standardised predictive distributions in the units of y."""
        units = self.standardiser
        return Mixture(units.mean_to_user(found.means), units.variance_to_user(found.variances), found.weights)

    @property
    def returns_to_prior(self) -> bool:
        """Do predictions fall back towards the prior far outside the training inputs?"""
        return self.process.returns_to_prior

    def mean_and_covariance(self, rows: Rows, include_noise: bool) -> tuple[Array, Array]:
        """Mean (n,) and joint covariance (n, n) in the user's units."""
        check_dense(rows.n_rows, "Ask for return_std=True or predict fewer rows at a time.")
        inputs = self.tensor(rows.take(slice(None))[0])
        process = self.process
        covariance = process.observation_covariance(inputs) if include_noise else process.covariance(inputs)
        covariance = 0.5 * (covariance + covariance.mT)  # products may differ from their transpose
        mean, _ = self.latent(rows).moments()
        return mean, self.standardiser.variance_to_user(covariance.numpy())

    def sample(self, rows: Rows, count: int, generator: torch.Generator, include_noise: bool) -> Array:
        """Joint draws (n, count) in the units of y."""
        draw = self.process.sample_observations if include_noise else self.process.sample
        return self.standardiser.mean_to_user(draw(self.tensor(rows.take(slice(None))[0]), count, generator).numpy())

    def linear_map(self) -> Array | None:
        """W (D, d) where the kernel acts on (x - mean) W, in the units of X; None without a projection."""
        transform = self.process.members[0].transform
        found = None if transform is None else transform.linear_map
        return None if found is None else found.detach().numpy() / self.standardiser.x_scale[:, None]

    def extended(
        self,
        more: RowSource,
        lower: Array,
        upper: Array,
        engine: Engine,
        targets: tuple[float, float] | None = None,
    ) -> FittedModel:
        """Conditioned on further standardised rows; what was proven of those before is void. With Student-t noise each
        row is weighed by what the model says of it before. Their ranges join those known.
        """
        known = [each for each in (self.targets, targets) if each is not None]
        return replace(
            self,
            process=condition_further(self.process, more, engine),
            lower=np.minimum(self.lower, lower),
            upper=np.maximum(self.upper, upper),
            certificate=None,
            rows=None,
            targets=(min(low for low, _ in known), max(high for _, high in known)) if known else None,
        )
