"""All that a low-rank GP remembers of its data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from certgp.linalg import gram


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of (Phi, y); ``+`` merges disjoint data, so chunks, files and machines are one fold.

    The trace of the kernel matrix goes with them: it is N for a unit kernel whose diagonal is constant. Rows with the
    noise variance s2 / weight_i are rows with noise s2 once both sides are multiplied by sqrt(weight_i). So Phi, y and
    K here are Q Phi, Q y and Q K Q, Q = diag(sqrt(weight)); the trace is then sum_i weight_i k(x_i, x_i), and densities
    of y are those of Q y times |Q|, of which ``log_weights`` keeps the logarithm, twice. [docs/theorems.md, weights]
    """

    A: Tensor  # Phi' Phi  (r, r)
    b: Tensor  # Phi' y    (r,)
    yty: float  # y' y
    n: int
    kernel_trace: float  # Tr K = sum of k(x_i, x_i), of the kernel that Phi Phi' approximates
    log_weights: float = 0.0  # sum of ln weight_i

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.A + other.A,
            self.b + other.b,
            self.yty + other.yty,
            self.n + other.n,
            self.kernel_trace + other.kernel_trace,
            self.log_weights + other.log_weights,
        )

    @property
    def rank(self) -> int:
        """r, the number of features."""
        return self.b.shape[0]

    @staticmethod
    def zero(rank: int) -> Statistics:
        """The statistics of no data."""
        A = torch.zeros((rank, rank), dtype=torch.float64)
        return Statistics(A, A.new_zeros(rank), 0.0, 0, 0.0)

    @staticmethod
    def of(features: Tensor, y: Tensor, diagonal: Tensor | None = None, weight: Tensor | None = None) -> Statistics:
        """Statistics of one chunk: features (n, r), y (n,), k(x_i, x_i) (n,) where it is not one everywhere, weights
        (n,) where they are not. Sums are float64 whatever the type of the features.
        """
        if weight is not None:
            prior = weight if diagonal is None else weight * diagonal.detach()
            root = weight.sqrt()
            weighted = Statistics.of(features * root[:, None].to(features.dtype), y.double() * root, prior)
            return replace(weighted, log_weights=float(weight.log().sum()))
        b = (features.mT @ y.to(features.dtype)).double()
        target = y.double()
        trace = float(y.shape[0]) if diagonal is None else float(diagonal.detach().double().sum())
        return Statistics(gram(features), b, float(target @ target), y.shape[0], trace)

    def mixed(self, mixing: Tensor | None) -> Statistics:
        """Statistics of Phi M: (M' A M, M' b)."""
        if mixing is None:
            return self
        A = mixing.mT @ self.A @ mixing
        return replace(self, A=0.5 * (A + A.mT), b=mixing.mT @ self.b)

    def scaled(self, signal_variance: float) -> Statistics:
        """Statistics of sf Phi, for the kernel sf2 k."""
        A, b, trace = signal_variance * self.A, math.sqrt(signal_variance) * self.b, signal_variance * self.kernel_trace
        return replace(self, A=A, b=b, kernel_trace=trace)

    def repeated(self, times: float) -> Statistics:
        """Statistics of data in which every row occurs so many times; N / n times those of n random rows estimate those
        of all N.
        """
        if times == 1.0:
            return self
        yty, trace, log_weights = (times * each for each in (self.yty, self.kernel_trace, self.log_weights))
        return Statistics(times * self.A, times * self.b, yty, round(times * self.n), trace, log_weights)

    def close_to(self, other: Statistics, tolerance: float = 1e-9) -> bool:
        """Are these the statistics of the same data and features, up to rounding?"""
        if (self.n, self.rank) != (other.n, other.rank):
            return False
        gap_A = float((self.A - other.A).abs().max()) <= tolerance * float(other.A.abs().max())
        gap_b = float((self.b - other.b).abs().max()) <= tolerance * max(float(other.b.abs().max()), other.yty**0.5)
        gap_weights = abs(self.log_weights - other.log_weights) <= tolerance * max(self.n, abs(other.log_weights))
        return gap_A and gap_b and gap_weights and abs(self.yty - other.yty) <= tolerance * other.yty

    def trailing(self, rank: int) -> Statistics:
        """Statistics of the last ``rank`` features."""
        return replace(self, A=self.A[-rank:, -rank:], b=self.b[-rank:])

    def picked(self, columns: Tensor) -> Statistics:
        """Statistics of some of the features."""
        return replace(self, A=self.A[columns][:, columns], b=self.b[columns])

    def leading(self, rank: int) -> Statistics:
        """Statistics of the first ``rank`` features."""
        return replace(self, A=self.A[:rank, :rank], b=self.b[:rank])


def feature_cotangent(
    features: Tensor, y: Tensor, by_gram: Tensor, by_projection: Tensor, weight: Tensor | None = None
) -> Tensor:
    r"""dL/dPhi = 2 Phi G_A + y G_b' (n, r) from the cotangents G_A = dL/dA and G_b = dL/db of the statistics of Phi; of
    rows with weights (n,) each times its own.

    Computed feature-major: maps lay their features out as (r, n), and so does the cotangent.
    """
    cotangent = (2.0 * by_gram).to(features.dtype) @ features.mT
    cotangent.addr_(by_projection.to(features.dtype), y.to(features.dtype))
    if weight is not None:
        cotangent.mul_(weight.to(features.dtype))
    return cotangent.mT


@dataclass(frozen=True, eq=False)
class Cotangents:
    """Derivatives of a function L of the statistics (A, b, Tr K), and how they go back to what these are made of."""

    by_gram: Tensor  # G_A = dL/dA (r, r), symmetric
    by_projection: Tensor  # G_b = dL/db (r,)
    by_trace: float  # dL/d Tr K

    def through(self, mixing: Tensor) -> Cotangents:
        """Those of raw statistics, where A = M' A_raw M and b = M' b_raw."""
        return Cotangents(mixing @ self.by_gram @ mixing.mT, mixing @ self.by_projection, self.by_trace)

    def by_mixing(self, statistics: Statistics) -> Tensor:
        """2 A G_A + b G_b' (r, r): M' dL/dM, from the mixed statistics."""
        return 2.0 * statistics.A @ self.by_gram + torch.outer(statistics.b, self.by_projection)

    def by_features(self, features: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """dL/dPhi (n, r) of some rows."""
        return feature_cotangent(features, y, self.by_gram, self.by_projection, weight)

    def by_diagonal(self, diagonal: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """dL/dk(x_i, x_i) (n,) of some rows."""
        share = torch.full_like(diagonal, self.by_trace)
        return share if weight is None else share * weight.to(diagonal.dtype)
