"""Predictive distributions of fitted processes, in the units the process was fitted in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.gp.model import LowRankModel
from certgp.gp.posterior import LowRankPosterior
from certgp.gp.statistics import Statistics

DENSE_LIMIT = 20_000


@dataclass(frozen=True, eq=False)
class Box:
    """The smallest box that holds all training inputs, in standardised units."""

    lower: Tensor  # (D,)
    upper: Tensor  # (D,)

    def nearest(self, X: Tensor) -> Tensor:
        """The nearest point of the box to each row (n, D)."""
        return torch.minimum(torch.maximum(X, self.lower.to(X.dtype)), self.upper.to(X.dtype))


class GaussianProcess(ABC):
    """A conditioned GP: latent moments at new inputs."""

    signal_variance: float
    noise_variance: float
    box: Box | None = None  # range of the training inputs, where it is known
    noise_scale: float = 1.0  # new observations scatter with noise_scale * noise_variance (see ``gp.calibration``)

    @property
    def members(self) -> tuple[GaussianProcess, ...]:
        """The Gaussian processes whose equal mixture predicts: this one alone, unless it is a ``MixtureProcess``."""
        return (self,)

    @property
    def predictive_noise(self) -> float:
        """Variance of a new observation around f."""
        return self.noise_scale * self.noise_variance

    @abstractmethod
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the latent f at each row of X (n, D): (n,), (n,)."""

    @abstractmethod
    def covariance(self, X: Tensor) -> Tensor:
        """Joint covariance of the latent f at the rows of X: (n, n); its diagonal is the variance of ``moments``."""

    @abstractmethod
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Joint draws of the latent f: (n, count)."""

    def sample_observations(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Joint draws of new observations: (n, count)."""
        draws = self.sample(X, count, generator)
        noise = torch.randn(draws.shape, dtype=draws.dtype, generator=generator)
        return draws + math.sqrt(self.predictive_noise) * noise


class LowRankProcess(GaussianProcess):
    r"""A low-rank GP conditioned on its statistics.

    ``variance="lowrank"`` is the paper's model, Var f = s2 phi'C^-1 phi. ``variance="dtc"`` adds what the truncation
    lost of the prior, sf2 - |phi|^2 (jointly K - Phi Phi' >= 0): the variational predictive of sparse GPs, for maps
    that minorise.
    """

    def __init__(
        self, model: LowRankModel, statistics: Statistics, signal_variance: float, noise_variance: float, variance: str
    ) -> None:
        self.model = model
        self.statistics = statistics  # of unit-variance features
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.variance_kind = variance
        self.posterior = LowRankPosterior.condition(statistics.scaled(signal_variance), noise_variance)

    def updated(self, more: Statistics) -> LowRankProcess:
        """The same model conditioned on further data."""
        extended = LowRankProcess(
            self.model, self.statistics + more, self.signal_variance, self.noise_variance, self.variance_kind
        )
        extended.noise_scale, extended.box = self.noise_scale, self.box
        return extended

    @torch.no_grad()
    def features(self, X: Tensor) -> Tensor:
        """sf phi(x), (n, r)."""
        phi: Tensor = self.model(X)
        return math.sqrt(self.signal_variance) * phi.double()

    @torch.no_grad()
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        X, rho = self.placed(X)
        phi = self.features(X)
        mean, variance = self.posterior.mean(phi), self.posterior.variance(phi)
        if self.variance_kind == "dtc":
            variance = variance + self._lost_variance(phi)
        if rho is None:
            return mean, variance
        return rho * mean, rho.square() * variance + self.signal_variance * (1.0 - rho.square())

    @torch.no_grad()
    def covariance(self, X: Tensor) -> Tensor:
        X, rho = self.placed(X)
        phi = self.features(X)
        covariance = self.posterior.covariance(phi)
        if self.variance_kind == "dtc":
            covariance = covariance + self._lost_covariance(X, phi)
        if rho is None:
            return covariance
        return rho[:, None] * covariance * rho + torch.diag(self.signal_variance * (1.0 - rho.square()))

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        X, rho = self.placed(X)
        phi = self.features(X)
        draws = phi @ self.posterior.sample_weights(count, generator)
        if self.variance_kind == "dtc":
            lost = self._lost_covariance(X, phi)
            draws = draws + sample_centred(lost, count, generator)
        if rho is None:
            return draws
        fresh = torch.randn(draws.shape, dtype=draws.dtype, generator=generator)
        return rho[:, None] * draws + (self.signal_variance * (1.0 - rho.square())).sqrt()[:, None] * fresh

    @torch.no_grad()
    def placed(self, X: Tensor) -> tuple[Tensor, Tensor | None]:
        r"""Where the features of each row are taken, (n, D), and the correlation rho (n,) of f there with f at the row
        itself; rho is None where they are taken at the row itself.

        Rows that the transform pulls to the edge of the bulk, and with the lowrank variance all rows outside the range
        of the training inputs, are predicted from the nearest point z inside: given f(z), the prior says f(x) ~ N(rho
        f(z), sf2 (1 - rho^2)). So far outside a prediction falls back to the prior, instead of trusting features that
        no training row has tested there. (The dtc variance does so by itself: features below the kernel decay, and it
        adds what they lost.)
        """
        offset = self.model.transform.discarded(X)
        if offset is None and self.variance_kind == "lowrank" and self.box is not None:
            inside = self.box.nearest(X)
            if not bool((inside != X).any()):
                return X, None
            X, offset = inside, self.model.transform(X) - self.model.transform(inside)
        if offset is None:
            return X, None
        kernel = self.model.features.kernel
        return X, kernel(torch.zeros_like(offset[:1]), offset)[0].clamp(0.0, 1.0)

    def _lost_variance(self, phi: Tensor) -> Tensor:
        return (self.signal_variance - phi.square().sum(1)).clamp_min(0.0)

    def _lost_covariance(self, X: Tensor, phi: Tensor) -> Tensor:
        check_dense(X.shape[0], "Use variance='lowrank' or fewer rows.")
        lost = self.signal_variance * self.model.correlation(X, X) - phi @ phi.mT
        lost.diagonal().copy_(self._lost_variance(phi))  # the same numbers as in ``moments``
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
