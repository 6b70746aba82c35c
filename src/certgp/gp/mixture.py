"""Mixtures of Gaussians, and several processes that predict as one: the equal mixture of their densities.

Means and variances of the components are (m, n), m components at n rows; their weights (m,) are equal where none are
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri
from torch import Tensor

from certgp.gp.calibration import gaussian_log_density
from certgp.gp.noise import Noise, NoiseGain
from certgp.gp.process import GaussianProcess
from certgp.kernels import Kernel

Array = NDArray[np.float64]
_BISECTIONS = 60  # halve the bracket to the last digit of float64


def mixture_moments(means: Array, variances: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """E = sum_i w_i m_i and Var = sum_i w_i (v_i + (m_i - E)^2), a sum of squares: (n,), (n,)."""
    centre = np.average(means, 0, weights)
    return centre, np.average(variances + np.square(means - centre), 0, weights)


def mixture_log_density(y: Array, means: Array, variances: Array, weights: Array | None = None) -> Array:
    """log sum_i w_i N(y | m_i, v_i) at y (n,): (n,)."""
    each = gaussian_log_density(y, means, variances)
    density: Array = logsumexp(each, axis=0, b=_shares(means, weights)[:, None])
    return density


def mixture_quantiles(means: Array, variances: Array, levels: Array, weights: Array | None = None) -> Array:
    """Roots q of sum_i w_i Phi((q - m_i) / sd_i) = level: (n, number of levels).

    The root lies between the smallest and the largest quantile of the components, and bisection cannot miss it.
    """
    std, shares = np.sqrt(variances), _shares(means, weights)
    each = means[:, :, None] + std[:, :, None] * ndtri(levels)  # (m, n, levels)
    low, high = each.min(0), each.max(0)
    for _ in range(_BISECTIONS if len(means) > 1 else 0):
        middle = 0.5 * (low + high)
        below = np.tensordot(shares, ndtr((middle - means[:, :, None]) / std[:, :, None]), 1) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def mixture_crps(y: Array, means: Array, variances: Array, weights: Array | None = None) -> Array:
    r"""Continuous ranked probability score E|Y - y| - E|Y - Y'| / 2 at y (n,), in its units: (n,); lower is better.

    sum_i w_i A(y - m_i, v_i) - 1/2 sum_ij w_i w_j A(m_i - m_j, v_i + v_j),  A(m, v) = E|N(m, v)|.  [Grimit et al. 2006]
    """
    shares = _shares(means, weights)
    found = shares @ _mean_distance(y - means, variances)
    for share, mean, variance in zip(shares, means, variances, strict=True):
        found -= 0.5 * share * (shares @ _mean_distance(mean - means, variance + variances))
    return np.asarray(found)


def _mean_distance(mean: Array, variance: Array) -> Array:
    """E|N(m, v)| = 2 sd pdf(m / sd) + m (2 Phi(m / sd) - 1), number by number."""
    std = np.sqrt(variance)
    density = np.exp(-0.5 * np.square(mean / std)) / np.sqrt(2.0 * np.pi)
    return np.asarray(2.0 * std * density + mean * (2.0 * ndtr(mean / std) - 1.0))


def _shares(means: Array, weights: Array | None) -> Array:
    return np.full(len(means), 1.0 / len(means)) if weights is None else weights


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussian mixtures at n rows."""

    means: Array  # (m, n)
    variances: Array  # (m, n)
    weights: Array  # (m,), of sum one

    @staticmethod
    def of_observations(process: GaussianProcess, X: Tensor, weight: Tensor | None = None) -> Mixture:
        """Of new observations at rows X (n, D), each of weight one or ``weight`` (n,): one component for each member
        and each component of its noise.
        """
        means, variances, shares = [], [], []
        for member, share in zip(process.members, process.shares, strict=True):
            found = Mixture.of_sum(*member.observations(X), weight)
            means.append(found.means)
            variances.append(found.variances)
            shares.append(share * found.weights)
        return Mixture(np.concatenate(means), np.concatenate(variances), np.concatenate(shares))

    @staticmethod
    def of_sum(mean: Tensor, variance: Tensor, noise: Noise, weight: Tensor | None = None) -> Mixture:
        """Of f + noise, f ~ N(mean, variance) (n,), at rows of weight one or ``weight`` (n,)."""
        total = variance + (noise.variances if weight is None else noise.variances / weight)
        return Mixture(mean.expand(total.shape).numpy(), total.numpy(), noise.shares.numpy())

    @staticmethod
    def join(parts: Sequence[Mixture]) -> Mixture:
        """Those at the rows of several chunks."""
        means, variances = (
            np.concatenate(each, 1) for each in zip(*((p.means, p.variances) for p in parts), strict=True)
        )
        return Mixture(means, variances, parts[-1].weights)

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance (n,), (n,)."""
        return mixture_moments(self.means, self.variances, self.weights)

    def log_density(self, y: Array) -> Array:
        """At y (n,): (n,)."""
        return mixture_log_density(y, self.means, self.variances, self.weights)

    def cdf(self, y: Array) -> Array:
        """Probability of values below y (n,): (n,)."""
        each = ndtr((y - self.means) / np.sqrt(self.variances))
        return np.asarray(self.weights @ each)

    def crps(self, y: Array) -> Array:
        """Continuous ranked probability score at y (n,), in its units: (n,)."""
        return mixture_crps(y, self.means, self.variances, self.weights)

    def quantiles(self, levels: Array) -> Array:
        """(n, number of levels)."""
        return mixture_quantiles(self.means, self.variances, levels, self.weights)


class MixtureProcess(GaussianProcess):
    """p(f) = sum_i w_i p_i(f): each draw comes whole from one member. Weights are equal where none are given."""

    def __init__(self, members: Sequence[GaussianProcess], weights: Array | None = None) -> None:
        self._members = tuple(members)
        self._weights = np.full(len(members), 1.0 / len(members)) if weights is None else np.asarray(weights)
        self.differentiable = all(member.differentiable for member in members)
        self.holds_rows = any(member.holds_rows for member in members)
        self.signal_variance = self._average([member.signal_variance for member in members])
        # what remains of a new observation's variance once the mixture's latent variance is taken off
        self.noise_variance = self._average([member.predictive_noise for member in members])
        self.noise_gain = NoiseGain.of_members([each.noise_gain for each in members if each.noise_gain is not None])

    @property
    def members(self) -> tuple[GaussianProcess, ...]:
        return self._members

    @property
    def shares(self) -> Array:
        return self._weights

    def with_members(self, members: Sequence[GaussianProcess]) -> MixtureProcess:
        """Others in their places, with the same weights."""
        return MixtureProcess(members, self._weights)

    @property
    def kernel(self) -> Kernel:
        """That of the first member; each has its own."""
        return self._members[0].kernel

    @property
    def rank(self) -> int:
        return self._members[0].rank

    @property
    def n_rows(self) -> int:
        return self._members[0].n_rows

    def log_evidence(self) -> float:
        """The mean over the members."""
        return self._average([member.log_evidence() for member in self._members])

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        means, variances = zip(*(member.moments(X) for member in self._members), strict=True)
        mean, variance = mixture_moments(torch.stack(means).numpy(), torch.stack(variances).numpy(), self._weights)
        return torch.from_numpy(mean), torch.from_numpy(variance)

    def covariance(self, X: Tensor) -> Tensor:
        return self._mix_covariances(self._means(X), [member.covariance(X) for member in self._members])

    def observation_covariance(self, X: Tensor) -> Tensor:
        return self._mix_covariances(self._means(X), [member.observation_covariance(X) for member in self._members])

    def differentiable_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.from_numpy(self._weights)
        means, variances = map(
            torch.stack, zip(*(each.differentiable_moments(X) for each in self._members), strict=True)
        )
        centre = weights @ means
        return centre, weights @ (variances + (means - centre).square())

    def differentiable_joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Of the mixture, which is no Gaussian."""
        means, covariances = zip(*(each.differentiable_joint(X) for each in self._members), strict=True)
        stacked = torch.stack(means)
        return torch.from_numpy(self._weights) @ stacked, self._mix_covariances(stacked, covariances)

    def _means(self, X: Tensor) -> Tensor:
        return torch.stack([member.moments(X)[0] for member in self._members])

    def _mix_covariances(self, means: Tensor, covariances: Sequence[Tensor]) -> Tensor:
        """sum_i w_i (C_i + (m_i - m)(m_i - m)'), m = sum_i w_i m_i, of means (m, n)."""
        weights = torch.from_numpy(self._weights)
        spread = weights.sqrt()[:, None] * (means - weights @ means)
        pairs = zip(self._weights, covariances, strict=True)
        within: Tensor = sum((w * each for w, each in pairs), torch.zeros(()).double())
        return within + spread.mT @ spread

    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        counts = self._counts(count, generator)
        draws = [member.sample(X, n, generator) for member, n in zip(self._members, counts, strict=True) if n]
        return self._shuffle(draws, generator)

    def sample_observations(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        counts = zip(self._members, self._counts(count, generator), strict=True)
        return self._shuffle([member.sample_observations(X, n, generator) for member, n in counts if n], generator)

    def _average(self, values: Sequence[float]) -> float:
        return float(np.average(values, weights=self._weights))

    def _counts(self, count: int, generator: torch.Generator) -> list[int]:
        """How many of ``count`` draws each member gets."""
        if np.ptp(self._weights) == 0.0:
            picks = torch.randint(len(self._members), (count,), generator=generator)
        else:
            ends = torch.from_numpy(np.cumsum(self._weights)[:-1])
            picks = torch.searchsorted(ends, torch.rand(count, dtype=torch.float64, generator=generator), right=True)
        return [int(n) for n in torch.bincount(picks, minlength=len(self._members))]

    def _shuffle(self, draws: list[Tensor], generator: torch.Generator) -> Tensor:
        joined = torch.cat(draws, dim=1)
        return joined[:, torch.randperm(joined.shape[1], generator=generator)]
