"""The exact Gaussian process: the oracle, O(N^3)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.errors import InvalidInputError
from certgp.gp.conditionals import Indices
from certgp.gp.neighbours import Neighbours, search_coordinates
from certgp.gp.noise import NEAR, NoiseInputs, near_scatter, nothing
from certgp.gp.process import GaussianProcess, check_dense, sample_centred
from certgp.kernels import Kernel
from certgp.linalg import cholesky, log_det_from_cholesky, solve_lower, solve_lower_transposed

EXACT_REMEDY = "K + s2 I (raise noise_variance)"
_DENSE_COPIES = 5  # matrices of N x N alive during one evaluation


def exact_log_evidence(K: Tensor, y: Tensor, noise_variance: float | Tensor) -> float:
    """log N(y | 0, S) = -1/2 [ y'S^-1 y + log|S| + N log 2 pi ], S = K + s2 I, or K + diag(s2) with a noise variance
    (N,) per row.
    """
    L = _factor(K, noise_variance)
    half = solve_lower(L, y)
    return -0.5 * float(half @ half + log_det_from_cholesky(L) + y.shape[0] * math.log(2.0 * math.pi))


def _factor(K: Tensor, noise: float | Tensor) -> Tensor:
    """L with L L' = K + s2 I, or K + diag(s2)."""
    S = K.clone()
    S.diagonal().add_(noise)
    return cholesky(S, EXACT_REMEDY)


@dataclass(frozen=True, eq=False)
class ExactProfile:
    """Negative log evidence with the signal variance maximised out; its gradient is found when it is asked for."""

    value: float
    signal_variance: float
    _factor: Tensor  # L (N, N) with S = L L'
    _weights: Tensor  # a = S^-1 y (N,)
    _noise: float | Tensor  # g, or g / weight (N,)

    @cached_property
    def by_correlation(self) -> Tensor:
        """dL/dR (N, N), R the correlation matrix."""
        inverse, a = torch.cholesky_inverse(self._factor), self._weights
        return inverse.addr_(a, a, alpha=-1.0 / self.signal_variance).mul_(0.5)

    @property
    def by_log_ratio(self) -> float:
        """dL/d log g, g = s2 / sf2."""
        return float((self._noise * self.by_correlation.diagonal()).sum())


def profile_exact_evidence(
    correlation: Tensor, y: Tensor, noise_ratio: float, weight: Tensor | None = None
) -> ExactProfile:
    r"""min over sf2 of -log N(y | 0, sf2 (R + g I)): sf2 = y'S^-1 y / N with S = R + g I, or R + g diag(1 / weight).

    L = 1/2 [ N + log|S| + N log sf2 + N log 2 pi ],   dL/dS = 1/2 (S^-1 - a a' / sf2),  a = S^-1 y
    """
    n, noise = y.shape[0], noise_ratio if weight is None else noise_ratio / weight
    L = _factor(correlation, noise)
    a = solve_lower_transposed(L, solve_lower(L, y))
    sf2 = max(float(y @ a) / n, torch.finfo(torch.float64).tiny)
    value = 0.5 * (n + float(log_det_from_cholesky(L)) + n * math.log(sf2) + n * math.log(2.0 * math.pi))
    return ExactProfile(value, sf2, L, a, noise)


class ExactProcess(GaussianProcess):
    """GP conditioned on all rows: mean k*'S^-1 y, variance k** - |L^-1 k*|^2 with S = K + s2 I = L L', or
    K + s2 diag(1 / weight) where rows have weights.
    """

    differentiable: bool = True
    holds_rows: bool = True
    returns_to_prior: ClassVar[bool] = True

    def __init__(
        self, kernel: Kernel, X: Tensor, y: Tensor, noise_variance: float, weight: Tensor | None = None
    ) -> None:
        self._kernel = kernel
        self.rows = Chunk(X, y, weight)
        self.X = X
        self.y = y
        self.signal_variance = float(kernel.signal_variance)
        self.noise_variance = noise_variance
        self.factor = _factor(kernel(X, X), self.rows.noise(noise_variance))
        self.half = solve_lower(self.factor, y)
        self.weights = solve_lower_transposed(self.factor, self.half)

    @property
    def kernel(self) -> Kernel:
        return self._kernel

    @property
    def rank(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    def log_evidence(self) -> float:
        log_det = log_det_from_cholesky(self.factor)
        return -0.5 * float(self.half @ self.half + log_det + self.n_rows * math.log(2.0 * math.pi))

    @torch.no_grad()
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.differentiable_moments(X)

    def differentiable_moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        cross = self.kernel(X, self.X)
        explained = solve_lower(self.factor, cross.mT).square().sum(0)
        return cross @ self.weights, (self.kernel.diagonal(X) - explained).clamp_min(0.0)

    @torch.no_grad()
    def covariance(self, X: Tensor) -> Tensor:
        return self._covariance(X)

    def differentiable_joint(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.kernel(X, self.X) @ self.weights, self._covariance(X)

    def _covariance(self, X: Tensor) -> Tensor:
        half = solve_lower(self.factor, self.kernel(self.X, X))
        covariance = self.kernel(X, X) - half.mT @ half
        covariance.diagonal().copy_((self.kernel.diagonal(X) - half.square().sum(0)).clamp_min(0.0))
        return covariance

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        check_dense(X.shape[0], "Draw at fewer rows.")
        mean, _ = self.moments(X)
        return mean[:, None] + sample_centred(self.covariance(X), count, generator)

    def updated(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> ExactProcess:
        """The same GP conditioned on further rows X (n, d), y (n,)."""
        check_exact_memory(len(self.y) + len(y))
        rows = Chunk.join([self.rows, Chunk(X, y, weight)])
        extended = ExactProcess(self.kernel, rows.X, rows.y, self.noise_variance, rows.weight)
        return extended.with_settings_of(self)

    def with_variances(self, signal_variance: float, noise_variance: float) -> ExactProcess:
        """The same kernel and rows with other variances."""
        kernel, rows = self.kernel.with_signal_variance(signal_variance), self.rows
        return ExactProcess(kernel, rows.X, rows.y, noise_variance, rows.weight).with_settings_of(self)

    @cached_property
    def index(self) -> Neighbours:
        """The training rows by nearness."""
        return Neighbours(search_coordinates(self._kernel, self.X))

    @torch.no_grad()
    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        mean, variance = self.moments(X)
        near = self.index.nearest(search_coordinates(self._kernel, X), NEAR)
        return NoiseInputs(X, mean, variance, nothing(len(X)), nothing(len(X)), near_scatter(self.y, near, mean))

    @torch.no_grad()
    def leave_one_out(self, rows: Indices) -> NoiseInputs:
        r"""These training rows (n,), each predicted from all others: mean_i = y_i - [S^-1 y]_i / [S^-1]_ii and
        variance_i = 1 / [S^-1]_ii - s2 / weight_i.  [Rasmussen and Williams 2006, eq. 5.12]
        """
        picked = torch.from_numpy(rows)
        precision = torch.cholesky_inverse(self.factor).diagonal()[picked]
        mean = self.y[picked] - self.weights[picked] / precision
        variance = (1.0 / precision - self.rows.pick(picked).noise(self.noise_variance)).clamp_min(0.0)
        near = self.index.nearest(self.index.points[rows], NEAR, own=rows)
        none = nothing(len(rows))
        return NoiseInputs(self.X[picked], mean, variance, none, none, near_scatter(self.y, near, mean))

    def __getstate__(self) -> dict[str, Any]:
        """Without what is found again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "index"}


def fits_in_memory(n: int) -> bool:
    """Does a dense exact GP on n rows fit into this machine?"""
    return _bytes_needed(n) <= 0.8 * _bytes_of_machine()


def check_exact_memory(n: int) -> None:
    """Refuse a dense exact GP on n rows before the machine starts to swap."""
    if not fits_in_memory(n):
        raise InvalidInputError(
            f"a dense exact GP on {n} rows needs about {_bytes_needed(n) / 2**30:.0f} GiB of memory and this machine "
            f"has {_bytes_of_machine() / 2**30:.0f} GiB; use ExactGP(solver='iterative'), LocalGP, MercerGP, SparseGP "
            "or FourierGP, or fewer rows"
        )


def _bytes_needed(n: int) -> int:
    return _DENSE_COPIES * 8 * n * n


def _bytes_of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
