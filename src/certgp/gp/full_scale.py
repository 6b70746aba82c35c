r"""Low rank plus local: features for what varies slowly, near rows for what the features leave.

[Sang and Huang 2012; Gyger, Furrer and Sigrist 2024]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Chunk
from certgp.features import FeatureMap
from certgp.gp.conditionals import Indices, condition_residual, sparse_weights
from certgp.gp.evidence import log_evidence
from certgp.gp.local import LocalProcess, error_covariance
from certgp.gp.neighbours import earlier_neighbours
from certgp.gp.noise import NEAR, NoiseInputs, near_scatter, nothing
from certgp.gp.posterior import LowRankPosterior
from certgp.gp.process import GaussianProcess, check_dense, sample_centred
from certgp.gp.statistics import Statistics
from certgp.kernels import Kernel
from certgp.transforms import Transform

Array = NDArray[np.float64]
_BLOCK = 4096  # rows of features at a time


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    r"""Rows given their neighbours in the process that features leave: what is left of features and targets.

        psi_i = (phi_i - Phi_N'v_i) / sqrt(d_i),   t_i = (y_i - v_i'y_N) / sqrt(d_i)

    v_i and d_i are weights and variance, noise included, of R + s2 I, R = K - Phi Phi'. Under the model t given w is
    N(psi'w, 1), independently, with w ~ N(0, I).
    """

    features: Tensor  # psi (B, r)
    targets: Tensor  # t (B,)
    variances: Array  # d (B,)
    weights: Array  # v (B, m)


def whiten(
    kernel: Kernel, points: Tensor, phi: Tensor, y: Tensor, rows: Indices, neighbours: Indices, noise: Array
) -> WhitenedRows:
    """Some rows, by their numbers (B,), given their neighbours (B, m) among all: points (n, d), phi (n, r), y (n,) with
    noise variances (n,).
    """
    own = torch.from_numpy(rows)
    weights, variance = condition_residual(kernel, points[own], phi[own], points, phi, neighbours, noise)
    d = variance + noise[rows]
    V, root = sparse_weights(neighbours, weights, len(points)), torch.from_numpy(np.sqrt(d))
    features = (phi[own] - torch.from_numpy(V @ phi.numpy())) / root[:, None]
    return WhitenedRows(features, (y[own] - torch.from_numpy(V @ y.numpy())) / root, d, weights)


@dataclass(frozen=True, eq=False)
class WhitenedStatistics:
    """All that the low-rank part remembers of its rows; ``+`` adds rows that come later in the order."""

    statistics: Statistics  # of psi and t, whose noise variance is one
    log_determinant: float  # sum log d_i

    def __add__(self, other: WhitenedStatistics) -> WhitenedStatistics:
        return WhitenedStatistics(self.statistics + other.statistics, self.log_determinant + other.log_determinant)

    @staticmethod
    def of(rows: WhitenedRows) -> WhitenedStatistics:
        """The statistics of some rows."""
        return WhitenedStatistics(Statistics.of(rows.features, rows.targets), float(np.log(rows.variances).sum()))

    def log_evidence(self) -> float:
        r"""log Q(y) = -1/2 [c - b'(A + I)^-1 b + log|A + I| + sum log d_i + N log 2 pi]."""
        return log_evidence(self.statistics, 1.0) - 0.5 * self.log_determinant


class FullScaleProcess(GaussianProcess):
    r"""f(x) = phi(x)'w + e(x), w ~ N(0, I): features dominated by the kernel, and a local GP on the process e, of
    covariance k(x, x') - phi(x)'phi(x'), that they leave.

    With rows as in ``LocalProcess``; a new row x has weights v and variance d of e given its neighbours, and

        psi = phi(x) - Phi_N'v,   mean = v'y_N + psi'E[w | y],   variance = d + psi'Cov[w | y] psi

    Without neighbours this is the FITC model of its features; with all rows as neighbours the exact GP.
    """

    holds_rows: bool = True

    def __init__(self, local: LocalProcess, features: FeatureMap, known: WhitenedStatistics | None = None) -> None:
        self.local = local
        self.features = features.eval().requires_grad_(False)  # of unit signal variance
        self.signal_variance, self.noise_variance = local.signal_variance, local.noise_variance
        self._known = known

    def __getstate__(self) -> dict[str, Any]:
        """Without what is found again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("phi", "posterior")}

    @property
    def X(self) -> Tensor:
        """The training rows (N, D), in their order."""
        return self.local.X

    @property
    def y(self) -> Tensor:
        """Their targets (N,)."""
        return self.local.y

    @property
    def rows(self) -> Chunk:
        """Both, and the weights where there are some."""
        return self.local.rows

    @property
    def kernel(self) -> Kernel:
        return self.local.kernel

    @property
    def transform(self) -> Transform:
        return self.local.transform

    @property
    def returns_to_prior(self) -> bool:
        return self.local.returns_to_prior

    @property
    def rank(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        return self.local.n_rows

    @property
    def known(self) -> WhitenedStatistics:
        """The statistics of all training rows."""
        if self._known is None:
            self._known = self._whitened(0)
        return self._known

    @cached_property
    def phi(self) -> Tensor:
        """sf phi(x) of the training rows (N, r)."""
        return self._features(self.local.inputs)

    @cached_property
    def posterior(self) -> LowRankPosterior:
        """w given y."""
        return LowRankPosterior.condition(self.known.statistics, 1.0)

    @torch.no_grad()
    def _features(self, inputs: Tensor) -> Tensor:
        """sf phi of transformed rows (n, d)."""
        parts = [self.features(inputs[start : start + _BLOCK]) for start in range(0, max(len(inputs), 1), _BLOCK)]
        return math.sqrt(self.signal_variance) * torch.cat(parts).double()

    def _whitened(self, first: int) -> WhitenedStatistics:
        """Of the training rows from ``first`` on, given those before them."""
        local = self.local
        sets = earlier_neighbours(local.index.points, local.train_neighbours, first)
        total = WhitenedStatistics(Statistics.zero(self.features.rank), 0.0)
        for start in range(first, self.n_rows, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, self.n_rows))
            part = sets[rows - first]
            white = whiten(self.kernel, local.inputs, self.phi, self.y, rows, part, local.row_noise)
            total = total + WhitenedStatistics.of(white)
        return total

    def log_evidence(self) -> float:
        return self.known.log_evidence()

    @torch.no_grad()
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        _, _, _, psi, mean, variance = self._condition(self.transform(X))
        return mean + self.posterior.mean(psi), variance + self.posterior.variance(psi)

    def _condition(
        self, new: Tensor, near: Indices | None = None
    ) -> tuple[Indices, Array, Tensor, Tensor, Tensor, Tensor]:
        """Neighbours, their weights, phi and psi of transformed rows (n, d); mean and variance that neighbours give."""
        near = self.local.nearest(new) if near is None else near
        phi, rows = self._features(new), self.local.inputs
        weights, variance = condition_residual(self.kernel, new, phi, rows, self.phi, near, self.local.row_noise)
        V = sparse_weights(near, weights, self.n_rows)
        psi = phi - torch.from_numpy(V @ self.phi.numpy())
        return near, weights, phi, psi, torch.from_numpy(V @ self.y.numpy()), torch.from_numpy(variance)

    @torch.no_grad()
    def covariance(self, X: Tensor) -> Tensor:
        """That of the errors v'y of the local predictions of e, as in ``LocalProcess``, and of the weights w."""
        check_dense(X.shape[0], "Predict fewer rows at a time.")
        new = self.transform(X)
        near, weights, phi, psi, _, variance = self._condition(new)
        used, place = np.unique(near[near >= 0], return_inverse=True)
        sets = np.full(near.shape, -1)
        sets[near >= 0] = place
        some = torch.from_numpy(used)
        own, rows = torch.cat([new, phi], 1), torch.cat([self.local.inputs[some], self.phi[some]], 1)
        V = sparse_weights(sets, weights, len(used))
        result = error_covariance(self._residual, own, rows, V, self.local.row_noise[used])
        result.diagonal().copy_(variance)
        return result + self.posterior.covariance(psi)

    def _residual(self, a: Tensor, b: Tensor) -> Tensor:
        """k(x, z) - phi(x)'phi(z) between rows [x, phi(x)]."""
        d = self.local.inputs.shape[1]
        return self.kernel(a[:, :d], b[:, :d]) - a[:, d:] @ b[:, d:].mT

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        check_dense(X.shape[0], "Draw at fewer rows.")
        mean, _ = self.moments(X)
        return mean[:, None] + sample_centred(self.covariance(X), count, generator)

    @torch.no_grad()
    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        near, _, _, psi, mean, variance = self._condition(self.transform(X))
        return self._noise_inputs(X, near, psi, mean, variance)

    @torch.no_grad()
    def leave_one_out(self, rows: Indices) -> NoiseInputs:
        """These training rows (n,), each predicted from its neighbours without itself, and from w given all rows, of
        which one row is a small part.
        """
        points = self.local.index
        near = points.nearest(points.points[rows], min(self.local.neighbours, self.n_rows - 1), own=rows)
        picked = torch.from_numpy(rows)
        _, _, _, psi, mean, variance = self._condition(self.local.inputs[picked], near)
        return self._noise_inputs(self.X[picked], near, psi, mean, variance)

    def _noise_inputs(self, X: Tensor, near: Indices, psi: Tensor, mean: Tensor, variance: Tensor) -> NoiseInputs:
        mean, variance = mean + self.posterior.mean(psi), variance + self.posterior.variance(psi)
        scatter = near_scatter(self.y, near[:, :NEAR], mean)
        return NoiseInputs(X.double(), mean, variance, nothing(len(X)), nothing(len(X)), scatter)

    def reweighted(self, weight: Tensor | None, noise_variance: float) -> FullScaleProcess:
        """The same rows with other weights (N,) and noise."""
        return FullScaleProcess(self.local.reweighted(weight, noise_variance), self.features).with_settings_of(self)

    def with_variances(self, signal_variance: float, noise_variance: float) -> FullScaleProcess:
        """The same kernel, features and rows with other variances."""
        local = self.local.with_variances(signal_variance, noise_variance)
        return FullScaleProcess(local, self.features).with_settings_of(self)

    def updated(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> FullScaleProcess:
        """Conditioned on further rows, which come last in the order."""
        extended = FullScaleProcess(self.local.updated(X, y, weight), self.features)
        if self._known is not None:
            extended._known = self._known + extended._whitened(self.n_rows)
        return extended.with_settings_of(self)
