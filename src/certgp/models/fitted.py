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
from certgp.data.columns import Numbers
from certgp.data.rows import Weights
from certgp.data.summary import RunningMoments
from certgp.engines import Engine
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError
from certgp.gp import Box, GaussianProcess, LowRankProcess, Mixture, NoiseModel
from certgp.gp.process import check_dense
from certgp.gp.student import StudentNoise
from certgp.guarantees import Certificate
from certgp.kernels import Kernel
from certgp.training.conditioning import condition_further

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """What scores of some rows are made of; ``+`` joins those of others."""

    target: RunningMoments
    errors: float  # sum of weight (y - mean)^2
    losses: float  # sum of weight times negative log predictive density

    @staticmethod
    def of(found: Mixture, y: Array, weights: Weights) -> ScoreSums:
        """Of rows with these predictive distributions, targets (n,) and weights (n,)."""
        mean, _ = found.moments()
        w = np.ones(len(y)) if weights is None else weights
        errors, losses = np.square(y - mean), -found.log_density(y)
        return ScoreSums(RunningMoments.of(y[:, None], ("y",), weights), float(w @ errors), float(w @ losses))

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(self.target + other.target, self.errors + other.errors, self.losses + other.losses)

    @property
    def nlpd(self) -> float:
        """Weighted mean negative log predictive density."""
        return self.losses / self.target.n

    @property
    def r_squared(self) -> float:
        """1 - (mean squared error) / (variance of y); where y never varies 1 for no error and 0 for any."""
        squares = float(self.target.squares[0])
        if squares == 0.0:
            return 1.0 if self.errors == 0.0 else 0.0
        return 1.0 - self.errors / squares


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
        """The kernel in the units of the data; of warped inputs, or of the outputs of a projection or a network, where
        it acts on these.
        """
        units, process = self.standardiser, self.process.members[0]
        mean, scale = units.kernel_units
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
        parts = list(rows.map(self._moments_of, default_chunk_rows(self.process.rank)))
        means, variances = (np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1))
        return self.standardiser.mean_to_user(means), self.standardiser.variance_to_user(variances)

    def _moments_of(self, X: Numbers, _: Numbers | None = None) -> tuple[Array, Array]:
        """The same of a chunk, standardised."""
        inputs = self.tensor(X)
        means, variances = zip(*(member.moments(inputs) for member in self.process.members), strict=True)
        return torch.stack(means).numpy(), torch.stack(variances).numpy()

    def latent(self, rows: Rows) -> Mixture:
        """The distribution of f at each row, in the user's units."""
        means, variances = self.member_moments(rows)
        return Mixture(means, variances, self.process.shares)

    def observations(self, rows: Rows) -> Mixture:
        """The distribution of a new observation at each row, in the user's units, chunk by chunk."""
        found = rows.map(self._observations_of, default_chunk_rows(self.process.rank))
        return self.in_user_units(Mixture.join(list(found)))

    def _observations_of(self, X: Numbers, _: Numbers | None = None) -> Mixture:
        return Mixture.of_observations(self.process, self.tensor(X))

    def score_sums(self, rows: Rows) -> ScoreSums:
        """Sums from which scores of rows with their target follow; on a cluster they are computed there."""
        return rows.fold(self._score_block, default_chunk_rows(self.process.rank))

    def _score_block(self, _: slice, X: Numbers, y: Numbers | None, weights: Weights) -> ScoreSums:
        if y is None:
            raise InvalidInputError("the rows hold no target y; give y, or rows whose take() returns it")
        return ScoreSums.of(self.in_user_units(self._observations_of(X)), y.astype(np.float64), weights)

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
        """W (D, d) where the kernel acts on (x - mean) W, in the units of X, or of warped inputs where there is a warp;
        None without a projection.
        """
        transform = self.process.members[0].transform
        found = None if transform is None else transform.linear_map
        return None if found is None else found.detach().numpy() / self.standardiser.kernel_units[1][:, None]

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
