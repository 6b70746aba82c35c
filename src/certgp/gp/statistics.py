"""All that a low-rank GP remembers of its data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.linalg import gram


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of (Phi, y); ``+`` merges disjoint data, so chunks, files and machines are one fold."""

    A: Tensor  # Phi' Phi  (r, r)
    b: Tensor  # Phi' y    (r,)
    yty: float  # y' y
    n: int

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(self.A + other.A, self.b + other.b, self.yty + other.yty, self.n + other.n)

    @property
    def rank(self) -> int:
        """r, the number of features."""
        return self.b.shape[0]

    @staticmethod
    def zero(rank: int) -> Statistics:
        """The statistics of no data."""
        return Statistics(
            torch.zeros((rank, rank), dtype=torch.float64), torch.zeros(rank, dtype=torch.float64), 0.0, 0
        )

    @staticmethod
    def of(features: Tensor, y: Tensor) -> Statistics:
        """Statistics of one chunk: features (n, r), y (n,). Sums are float64 whatever the type of the features."""
        b = (features.mT @ y.to(features.dtype)).double()
        target = y.double()
        return Statistics(gram(features), b, float(target @ target), y.shape[0])

    def mixed(self, mixing: Tensor | None) -> Statistics:
        """Statistics of Phi M: (M' A M, M' b)."""
        if mixing is None:
            return self
        A = mixing.mT @ self.A @ mixing
        return Statistics(0.5 * (A + A.mT), mixing.mT @ self.b, self.yty, self.n)

    def scaled(self, signal_variance: float) -> Statistics:
        """Statistics of sf Phi."""
        return Statistics(signal_variance * self.A, math.sqrt(signal_variance) * self.b, self.yty, self.n)

    def close_to(self, other: Statistics, tolerance: float = 1e-9) -> bool:
        """Are these the statistics of the same data and features, up to rounding?"""
        if (self.n, self.rank) != (other.n, other.rank):
            return False
        gap_A = float((self.A - other.A).abs().max()) <= tolerance * float(other.A.abs().max())
        gap_b = float((self.b - other.b).abs().max()) <= tolerance * max(float(other.b.abs().max()), other.yty**0.5)
        return gap_A and gap_b and abs(self.yty - other.yty) <= tolerance * other.yty

    def trailing(self, rank: int) -> Statistics:
        """Statistics of the last ``rank`` features."""
        return Statistics(self.A[-rank:, -rank:], self.b[-rank:], self.yty, self.n)

    def picked(self, columns: Tensor) -> Statistics:
        """Statistics of some of the features."""
        return Statistics(self.A[columns][:, columns], self.b[columns], self.yty, self.n)

    def leading(self, rank: int) -> Statistics:
        """Statistics of the first ``rank`` features."""
        return Statistics(self.A[:rank, :rank], self.b[:rank], self.yty, self.n)


def feature_cotangent(features: Tensor, y: Tensor, by_gram: Tensor, by_projection: Tensor) -> Tensor:
    r"""dL/dPhi = 2 Phi G_A + y G_b' (n, r) from the cotangents G_A = dL/dA and G_b = dL/db of the statistics of Phi.

    Computed feature-major: maps lay their features out as (r, n), and so does the cotangent.
    """
    cotangent = (2.0 * by_gram).to(features.dtype) @ features.mT
    cotangent.addr_(by_projection.to(features.dtype), y.to(features.dtype))
    return cotangent.mT
