"""The posterior over the r weights of a low-rank GP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.gp.evidence import NOISE_REMEDY
from certgp.gp.statistics import Statistics
from certgp.linalg import cholesky, eye_like, solve_lower, solve_lower_transposed


@dataclass(frozen=True, eq=False)
class LowRankPosterior:
    r"""f(x) = phi(x)'w with w | y ~ N(C^-1 b, s2 C^-1), C = A + s2 I = L L'.  [paper, sec. 3.2]"""

    factor: Tensor  # L (r, r)
    weights: Tensor  # C^-1 b (r,)
    noise_variance: float

    @staticmethod
    def condition(stats: Statistics, noise_variance: float) -> LowRankPosterior:
        """Condition on the data behind the statistics."""
        L = cholesky(stats.A + noise_variance * eye_like(stats.A), NOISE_REMEDY)
        return LowRankPosterior(L, solve_lower_transposed(L, solve_lower(L, stats.b)), noise_variance)

    def mean(self, features: Tensor) -> Tensor:
        """E f, features (n, r) -> (n,)."""
        return features @ self.weights

    def variance(self, features: Tensor) -> Tensor:
        """Var f = s2 |L^-1 phi|^2, a sum of squares: (n,)."""
        return self.noise_variance * solve_lower(self.factor, features.mT).square().sum(0)

    def covariance(self, features: Tensor) -> Tensor:
        """Cov f = s2 Phi C^-1 Phi', (n, n)."""
        half = solve_lower(self.factor, features.mT)
        return self.noise_variance * (half.mT @ half)

    def sample_weights(self, count: int, generator: torch.Generator) -> Tensor:
        """Draws of w, (r, count): C^-1 b + s L'^-1 z."""
        z = torch.randn(self.weights.shape[0], count, dtype=self.weights.dtype, generator=generator)
        return self.weights[:, None] + math.sqrt(self.noise_variance) * solve_lower_transposed(self.factor, z)
