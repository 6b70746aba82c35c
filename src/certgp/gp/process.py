"""Predictive distributions of fitted processes, in the units the process was fitted in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.gp.evidence import log_evidence
from certgp.gp.model import LowRankModel
from certgp.gp.noise import Noise, NoiseGain, NoiseInputs, NoiseModel, nothing
from certgp.gp.posterior import LowRankPosterior
from certgp.gp.statistics import Statistics
from certgp.gp.student import StudentNoise
from certgp.kernels import Kernel
from certgp.transforms import Transform

DENSE_LIMIT = 20_000
_LEAST_KEPT = 1e-6  # of a residual's variance, where a row is predicted by itself alone


@dataclass(frozen=True, eq=False)
class Box:
    """A box that just holds all training inputs, in standardised units."""

    lower: Tensor  # (D,)
    upper: Tensor  # (D,)

    def outside(self, X: Tensor) -> Tensor:
        """Which rows (n, D) are not in the box: (n,)."""
        return ((self.lower.to(X.dtype) > X) | (self.upper.to(X.dtype) < X)).any(1)


class GaussianProcess(ABC):
    """A conditioned GP: latent moments at new inputs."""

    signal_variance: float
    noise_variance: float
    box: Box | None = None  # range of the training inputs, where it is known
    differentiable: bool = False  # are there gradients of its moments with respect to x?
    holds_rows: bool = False  # does it predict from the training rows themselves?
    noise_scale: float = 1.0  # new observations scatter with noise_scale * noise_variance (see ``gp.calibration``) ...
    noise_model: NoiseModel | StudentNoise | None = None  # ... or as this says of each row
    noise_gain: NoiseGain | None = None  # what noise(x) gained, where it was tried

    @property
    def members(self) -> tuple[GaussianProcess, ...]:
        """The Gaussian processes whose mixture predicts: this one alone, unless it is a ``MixtureProcess``."""
        return (self,)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Weights of the members in the mixture (m,), of sum one."""
        return np.ones(1)

    @property
    def returns_to_prior(self) -> bool:
        """Do predictions fall back towards the prior far outside the training inputs?"""
        return all(member.returns_to_prior for member in self.members)

    @property
    def predictive_noise(self) -> float:
        """Variance of a new observation around f, as far as it does not depend on x."""
        return self.noise_scale * self.noise_variance

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """The exact kernel with its signal variance, on transformed inputs."""

    @property
    def transform(self) -> Transform | None:
        """What is in front of the kernel; None where it works on the inputs themselves."""
        return None

    @property
    @abstractmethod
    def rank(self) -> int:
        """Rank of the covariance of the rows conditioned on."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows conditioned on."""

    @abstractmethod
    def log_evidence(self) -> float:
        """Log density of the targets conditioned on."""

    @abstractmethod
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the latent f at each row of X (n, D): (n,), (n,)."""

    @abstractmethod
    def covariance(self, X: Tensor) -> Tensor:
        """Joint covariance of the latent f at the rows of X: (n, n); its diagonal is the variance of ``moments``."""

    def differentiable_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``moments`` with gradients with respect to X, where the process is ``differentiable``."""
        return self.moments(X)

    def differentiable_joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (n,) and joint covariance (n, n) of the latent f, likewise."""
        return self.moments(X)[0], self.covariance(X)

    @abstractmethod
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Joint draws of the latent f: (n, count)."""

    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        """What a noise model looks at, at rows X (n, D); ``moments`` are part of it."""
        none = nothing(len(X))
        return NoiseInputs(X.double(), *self.moments(X), none, none, none)

    def observations(self, X: Tensor) -> tuple[Tensor, Tensor, Noise]:
        """Latent moments (n,), (n,) at the rows of X, as far as they enter new observations, and the noise of these."""
        if self.noise_model is None:
            return *self.moments(X), Noise.constant(self.predictive_noise)
        return self.observe(self.noise_inputs(X))

    def observe(self, rows: NoiseInputs) -> tuple[Tensor, Tensor, Noise]:
        """The same at rows of which the noise model's inputs are known."""
        if self.noise_model is None:
            return rows.mean, rows.variance, Noise.constant(self.predictive_noise)
        if isinstance(self.noise_model, NoiseModel):
            rows = self.noise_model.scale(rows)
        return rows.mean, rows.variance, self.noise_model.at(rows)

    def noise(self, X: Tensor) -> Noise:
        """The noise of new observations at the rows of X (n, D)."""
        return Noise.constant(self.predictive_noise) if self.noise_model is None else self.observations(X)[2]

    def observation_covariance(self, X: Tensor) -> Tensor:
        """Joint covariance of new observations at the rows of X: (n, n)."""
        roots = self._latent_roots(X)
        covariance = self.covariance(X) if roots is None else roots[:, None] * self.covariance(X) * roots
        return covariance + torch.diag(self.noise(X).variance.expand(len(X)))

    def sample_observations(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Joint draws of new observations: (n, count)."""
        draws, roots = self.sample(X, count, generator), self._latent_roots(X)
        if roots is not None:
            mean = self.moments(X)[0][:, None]
            draws = mean + roots[:, None] * (draws - mean)
        return draws + self.noise(X).sample(len(X), count, generator)

    def _latent_roots(self, X: Tensor) -> Tensor | None:
        """sqrt(v' / v) (n,), v' the part of the latent variance v that enters observations; None where it is all."""
        if not isinstance(self.noise_model, NoiseModel) or self.noise_model.latent == 1.0:
            return None
        _, variance = self.moments(X)
        _, used, _ = self.observations(X)
        return torch.where(variance > 0.0, used / variance, torch.ones_like(variance)).sqrt()

    def with_settings_of(self, other: GaussianProcess) -> Self:
        """This process after it was given what belongs to the model rather than to its rows: range and noise."""
        self.box, self.noise_scale = other.box, other.noise_scale
        self.noise_model, self.noise_gain = other.noise_model, other.noise_gain
        return self


class LowRankProcess(GaussianProcess):
    r"""A low-rank GP conditioned on its statistics.

    ``variance="paper"`` is the low-rank model itself, Var f = s2 phi'C^-1 phi, at every x. ``variance="dtc"`` adds what
    the truncation lost of the prior, k(x, x) - |phi|^2 (jointly K - Phi Phi' >= 0): the variational predictive of
    sparse GPs, for maps that are dominated by the kernel. ``variance="lowrank"`` is the low-rank model in the range of
    the training inputs and falls back to the prior outside.
    """

    differentiable: bool = True

    def __init__(
        self, model: LowRankModel, statistics: Statistics, signal_variance: float, noise_variance: float, variance: str
    ) -> None:
        self.model = model
        self.statistics = statistics  # of unit-variance features
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.variance_kind = variance
        self.posterior = LowRankPosterior.condition(statistics.scaled(signal_variance), noise_variance)

    @property
    def kernel(self) -> Kernel:
        return self.model.features.fixed_kernel().with_signal_variance(self.signal_variance)

    @property
    def transform(self) -> Transform:
        return self.model.transform

    @property
    def returns_to_prior(self) -> bool:
        if self.variance_kind == "paper":
            return False  # where features decay, the mean does, and the variance with it
        return self.model.transform.returns_outliers or (
            self.model.transform.keeps_coordinates and self.model.features.decays
        )

    @property
    def rank(self) -> int:
        return self.model.rank

    @property
    def n_rows(self) -> int:
        return self.statistics.n

    def log_evidence(self) -> float:
        return log_evidence(self.statistics.scaled(self.signal_variance), self.noise_variance)

    def truncated(self, rank: int) -> LowRankProcess:
        """The process of the leading features at the same hyper-parameters."""
        features = self.model.features
        columns, factor = features.leading_columns(rank)
        model = LowRankModel(self.model.transform, features.leading(rank)).requires_grad_(False)
        stats = self.statistics.picked(columns).scaled(factor)
        cut = LowRankProcess(model, stats, self.signal_variance, self.noise_variance, self.variance_kind)
        cut.box, cut.noise_scale = self.box, self.noise_scale
        return cut

    def updated(self, more: Statistics) -> LowRankProcess:
        """The same model conditioned on further data."""
        extended = LowRankProcess(
            self.model, self.statistics + more, self.signal_variance, self.noise_variance, self.variance_kind
        )
        return extended.with_settings_of(self)

    def with_variances(self, signal_variance: float, noise_variance: float) -> LowRankProcess:
        """The same features and rows with other variances."""
        other = LowRankProcess(self.model, self.statistics, signal_variance, noise_variance, self.variance_kind)
        return other.with_settings_of(self)

    @torch.no_grad()
    def features(self, X: Tensor) -> Tensor:
        """sf phi(x), (n, r)."""
        return self._features(X)

    def _features(self, X: Tensor) -> Tensor:
        phi: Tensor = self.model(X)
        return math.sqrt(self.signal_variance) * phi.double()

    @torch.no_grad()
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.differentiable_moments(X)

    def differentiable_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        phi = self._features(X)
        return self.restored(X, phi, self.posterior.mean(phi), self.posterior.variance(phi))

    @torch.no_grad()
    def leave_one_out(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> NoiseInputs:
        r"""Rows X (n, D) of those conditioned on, each predicted from all others. With h_i = weight_i v_i / s2, v_i the
        variance of phi_i'w given all rows:  mean_i = y_i - (y_i - phi_i'w) / (1 - h_i),  variance_i = v_i / (1 - h_i).
        """
        phi = self.features(X)
        fitted, variance = self.posterior.mean(phi), self.posterior.variance(phi)
        leverage = variance / self.noise_variance if weight is None else weight * variance / self.noise_variance
        kept = (1.0 - leverage).clamp_min(_LEAST_KEPT)
        mean = y.double() - (y.double() - fitted) / kept
        moments = self.restored(X, phi, mean, variance / kept)
        return self.noise_inputs_at(X, phi, *moments, self.restored(X, phi, fitted, variance)[0])

    @torch.no_grad()
    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        phi = self.features(X)
        mean, variance = self.restored(X, phi, self.posterior.mean(phi), self.posterior.variance(phi))
        return self.noise_inputs_at(X, phi, mean, variance, mean)

    def noise_inputs_at(self, X: Tensor, phi: Tensor, mean: Tensor, variance: Tensor, fitted: Tensor) -> NoiseInputs:
        """What a noise model looks at, at rows X (n, D) with features sf phi (n, r) and these moments (n,)."""
        features = phi / math.sqrt(self.signal_variance)
        return NoiseInputs(X.double(), mean, variance, fitted[:, None], features, nothing(len(X)))

    def restored(self, X: Tensor, phi: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Moments of phi'w with what the truncation and the transform took off the prior."""
        restored = self.restored_variance_mask(X)
        if restored is not None:
            variance = variance + restored * self._lost_variance(X, phi)
        rho = self.boundary_correlation(X)
        if rho is None:
            return mean, variance
        return rho * mean, rho.square() * variance + self.signal_variance * (1.0 - rho.square())

    @torch.no_grad()
    def covariance(self, X: Tensor) -> Tensor:
        return self.differentiable_joint(X)[1]

    def differentiable_joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        phi = self._features(X)
        mean, covariance = self.posterior.mean(phi), self.posterior.covariance(phi)
        restored = self.restored_variance_mask(X)
        if restored is not None:
            covariance = covariance + restored[:, None] * self._lost_covariance(X, phi) * restored
        rho = self.boundary_correlation(X)
        if rho is None:
            return mean, covariance
        own = torch.diag(self.signal_variance * (1.0 - rho.square()))
        return rho * mean, rho[:, None] * covariance * rho + own

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        phi = self.features(X)
        draws = phi @ self.posterior.sample_weights(count, generator)
        restored = self.restored_variance_mask(X)
        if restored is not None:
            rows = torch.nonzero(restored)[:, 0]
            draws[rows] += sample_centred(self._lost_covariance(X[rows], phi[rows]), count, generator)
        rho = self.boundary_correlation(X)
        if rho is None:
            return draws
        fresh = torch.randn(draws.shape, dtype=draws.dtype, generator=generator)
        return rho[:, None] * draws + (self.signal_variance * (1.0 - rho.square())).sqrt()[:, None] * fresh

    @torch.no_grad()
    def restored_variance_mask(self, X: Tensor) -> Tensor | None:
        """Rows (n,) whose prior variance lost by truncation is added back (one) or not (zero); None where no row's is.

        With the dtc variance these are all rows, with the paper's none. With the lowrank variance they are those
        outside the range of the training inputs. No training row has tested the model there, and features dominated by
        the kernel decay: without what they lost the model would be most certain where it knows least.
        """
        if self.variance_kind == "dtc":
            return torch.ones(len(X), dtype=torch.float64)
        if self.variance_kind == "paper" or self.box is None or not self.model.features.dominated:
            return None
        outside = self.box.outside(X)
        return outside.double() if bool(outside.any()) else None

    def boundary_correlation(self, X: Tensor) -> Tensor | None:
        """Correlation rho (n,) of f(x) with f(g(x)) where the transform pulled x to g(x); None with the paper's
        variance, which keeps to f(g(x)).

        Given f(g(x)), the prior says f(x) ~ N(rho f(g(x)), sf2 (1 - rho^2)): far outside the box a prediction falls
        back to the prior instead of repeating the edge with the edge's confidence.
        """
        offset = None if self.variance_kind == "paper" else self.model.transform.discarded(X)
        if offset is None:
            return None
        kernel = self.model.features.kernel
        return kernel(torch.zeros_like(offset[:1]), offset)[0].clamp(0.0, 1.0)

    @torch.no_grad()
    def falls_back(self, X: Tensor) -> Tensor:
        """Rows (n,) outside the training inputs at which a prediction is not the low-rank model's alone: the transform
        pulled them in, or the lost prior variance is added back there.
        """
        away = torch.zeros(len(X), dtype=torch.bool)
        rho = self.boundary_correlation(X)
        if rho is not None:
            away |= rho < 1.0
        if self.variance_kind == "lowrank":
            restored = self.restored_variance_mask(X)
            if restored is not None:
                away |= restored > 0.0
        return away

    def prior_variance(self, X: Tensor) -> Tensor:
        """k(x, x) of the exact kernel (n,), signal variance included."""
        diagonal = self.model.diagonal(X)
        unit = torch.ones(len(X), dtype=torch.float64) if diagonal is None else diagonal
        return self.signal_variance * unit

    def _lost_variance(self, X: Tensor, phi: Tensor) -> Tensor:
        return (self.prior_variance(X) - phi.square().sum(1)).clamp_min(0.0)

    def _lost_covariance(self, X: Tensor, phi: Tensor) -> Tensor:
        check_dense(X.shape[0], "Use variance='lowrank' or fewer rows.")
        lost = self.signal_variance * self.model.correlation(X, X) - phi @ phi.mT
        lost.diagonal().copy_(self._lost_variance(X, phi))  # the same numbers as in ``moments``
        return lost


def sample_centred(covariance: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draws of N(0, covariance) for a positive semi-definite matrix (n, n): (n, count). Eigenvalues below zero are
    rounding.
    """
    values, vectors = torch.linalg.eigh(covariance)
    z = torch.randn(covariance.shape[0], count, dtype=covariance.dtype, generator=generator)
    draws: Tensor = vectors @ (values.clamp_min(0.0).sqrt()[:, None] * z)
    return draws


def check_dense(n: int, remedy: str) -> None:
    """Refuse an n x n matrix that would not fit, before it is made."""
    if n > DENSE_LIMIT:
        raise InvalidInputError(f"{n} rows need a dense {n} x {n} matrix ({8e-9 * n * n:.0f} GB). {remedy}")
