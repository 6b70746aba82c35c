"""Exchanging basis functions for better ones from a pool, by how much evidence each brings."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError
from certgp.gp.statistics import Statistics
from certgp.linalg import cholesky, solve_lower, solve_lower_transposed

_LEAST_NEW = 1e-5  # prior variance that the set leaves to a newcomer; below, rounding would decide


class BasisPool:
    r"""Basis functions c_1 .. c_m whose weights have the prior precision K, and subsets of them.

    A subset S stands for the features c_S K_SS^-1/2 (inducing points: c_j = k(., z_j) and K = K_zz). Twice its
    objective at fixed variances is, up to a constant, with C = statistics.A, g = s2 / sf2 and T = C_SS + g K_SS:

        b_S' T^-1 b_S / s2 - ln|T| + ln|K_SS| + |S| ln g  {+ tr(K_SS^-1 C_SS) / g for the ELBO}

    What it loses with a function and what it gains from another are Schur complements of K and of T: no subset is
    evaluated anew to compare its neighbours.
    """

    def __init__(
        self, pool: Statistics, prior: Tensor, signal_variance: float, noise_variance: float, objective: str
    ) -> None:
        """``pool``: statistics of the m functions; ``prior``: K (m, m)."""
        self.C, self.b, self.K = pool.A, pool.b.reshape(len(pool.b), -1), prior  # (m, q) of several outputs
        self.s2, self.g = noise_variance, noise_variance / signal_variance
        self.T = pool.A + self.g * prior
        self.weight = 1.0 / self.g if objective == "elbo" else 0.0  # of the explained trace

    def losses(self, chosen: Tensor) -> Tensor:
        """What the objective, twice, loses with each function of a set (r,)."""
        K_factor, T_factor = self._factors(chosen)
        K_inverse = torch.cholesky_inverse(K_factor)
        k, t = K_inverse.diagonal(), torch.cholesky_inverse(T_factor).diagonal()
        weights = torch.cholesky_solve(self.b[chosen], T_factor)
        trace = ((K_inverse @ _block(self.C, chosen)) * K_inverse).sum(1) / k
        return weights.square().sum(1) / (t * self.s2) + torch.log(t * self.g / k) + self.weight * trace

    def gains(self, chosen: Tensor) -> Tensor:
        """What the objective, twice, gains from each function of the pool (m,); -inf for those that bring nothing, or
        so little that rounding hides it.

        Schur complements by triangular solves: with explicit inverses they are noise where T is ill-conditioned.
        """
        K_factor, T_factor = self._factors(chosen)
        K_part, T_part = solve_lower(K_factor, self.K[chosen]), solve_lower(T_factor, self.T[chosen])
        k = self.K.diagonal() - K_part.square().sum(0)
        t = self.T.diagonal() - T_part.square().sum(0)
        residual = self.b - T_part.mT @ solve_lower(T_factor, self.b[chosen])
        explained = solve_lower_transposed(K_factor, K_part)
        trace = self.C.diagonal() + (explained * (_block(self.C, chosen) @ explained - 2.0 * self.C[chosen])).sum(0)
        useless = (k < _LEAST_NEW * self.K.diagonal()) | ~(t >= 0.5 * self.g * k)  # exactly, t >= g k
        useless[chosen] = True
        k, t = k.masked_fill(useless, 1.0), t.masked_fill(useless, 1.0)
        explained_by_y = residual.square().sum(1) / (t * self.s2)
        found = explained_by_y - torch.log(t / (k * self.g)) + self.weight * trace.clamp_min(0.0) / k
        return found.masked_fill(useless, -math.inf)

    def _factors(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Lower Cholesky factors of K_SS and T."""
        what = "a block of the pool of basis functions"
        return cholesky(_block(self.K, chosen), what), cholesky(_block(self.T, chosen), what)

    def exchange(self, chosen: NDArray[np.int64], least_gain: float, most: int) -> NDArray[np.int64]:
        """The set after at most ``most`` exchanges, each of the function that is missed least for the one that gains
        most, as long as the objective rises by more than ``least_gain``.
        """
        current = torch.from_numpy(chosen.copy())
        for _ in range(most):
            try:
                losses = self.losses(current)
                place = int(losses.argmin())
                gains = self.gains(torch.cat([current[:place], current[place + 1 :]]))
            except NotPositiveDefiniteError:  # without jitter the functions may be dependent to rounding
                break
            best = int(gains.argmax())
            if not 0.5 * float(gains[best] - losses[place]) > least_gain or best == int(current[place]):
                break
            current[place] = best
        return current.numpy()


def _block(matrix: Tensor, chosen: Tensor) -> Tensor:
    return matrix[chosen][:, chosen]
