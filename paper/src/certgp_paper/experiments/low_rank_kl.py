r"""KL(N(0, K + s2 I) || N(0, Sigma + s2 I)) at many ranks of one Sigma = Phi Phi', without N x N work for each of them.

With S1 = K + s2 I, S2 = Sigma + s2 I and B = Phi'Phi + s2 I (r, r):

    KL = 1/2 [ Tr(S2^-1 S1) - N + log|S2| - log|S1| ]
    Tr(S2^-1 S1) = [ Tr S1 - Tr(B^-1 Phi'S1 Phi) ] / s2,      log|S2| = log|B| + (N - r) log s2

One factor of S1 and one product K Phi serve all ranks. The formula subtracts numbers of size N: KL below 1e-10 N is
noise here, and ``truncation_kl`` is for those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.features import FourierMap
from certgp.guarantees import sharpened_trace_bound
from certgp.guarantees.rounding import accumulation_slack
from certgp.guarantees.scalars import log_excess
from certgp.linalg import cholesky, eye_like, log_det_from_cholesky, solve_lower

Array = NDArray[np.float64]
_REMEDY = "K + s2 I (raise the noise)"


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """N(0, S1), S1 = K + s2 I."""

    K: Tensor  # (N, N)
    noise: float

    @property
    def n(self) -> int:
        """N, the number of rows."""
        return len(self.K)

    @cached_property
    def factor(self) -> Tensor:
        """L with L L' = S1, (N, N)."""
        return cholesky(self.K + self.noise * eye_like(self.K), _REMEDY)

    @cached_property
    def log_det(self) -> float:
        """log|S1|."""
        return float(log_det_from_cholesky(self.factor))

    @cached_property
    def trace(self) -> float:
        """Tr S1."""
        return float(self.K.diagonal().sum()) + self.n * self.noise

    def kl_to(self, Sigma: Tensor) -> float:
        """KL to N(0, Sigma + s2 I) for any Sigma (N, N), O(N^3)."""
        L = cholesky(Sigma + self.noise * eye_like(Sigma), _REMEDY)
        inverse = torch.cholesky_inverse(L)
        trace = float((inverse * self.K).sum() + self.noise * inverse.diagonal().sum())
        return 0.5 * (trace - self.n + float(log_det_from_cholesky(L)) - self.log_det)

    def kl_to_low_rank(self, gram: Tensor, product: Tensor) -> float:
        """KL to N(0, Phi Phi' + s2 I) from Phi'Phi and Phi'K Phi, both (r, r), O(r^3)."""
        return float(self._nested(gram, product)[-1])

    def kl_to_nested(self, Phi: Tensor) -> Array:
        """KL to the models of the first 1, .., r columns of Phi (N, r).

        Leading blocks of L are the factors of smaller ranks, so log|B_k| and Tr(B_k^-1 Phi_k'S1 Phi_k) = sum over
        i <= k of (L^-1 Phi'S1 Phi L^-T)_ii are cumulative sums.
        """
        return self._nested(Phi.mT @ Phi, Phi.mT @ (self.K @ Phi))

    def _nested(self, gram: Tensor, product: Tensor) -> Array:
        L = cholesky(gram + self.noise * eye_like(gram), _REMEDY)
        half = solve_lower(L, product + self.noise * gram)
        explained = solve_lower(L, half.mT).diagonal().cumsum(0)
        ranks = torch.arange(1, len(L) + 1, dtype=torch.float64)
        log_det = 2.0 * L.diagonal().log().cumsum(0) + (self.n - ranks) * math.log(self.noise)
        kl = 0.5 * ((self.trace - explained) / self.noise - self.n + log_det - self.log_det)
        return np.asarray(kl.numpy())


class FourierKL:
    """KL from the exact law to a Fourier model of the first ``pairs`` frequencies of a pool.

    Up to rank N / 2 by r x r algebra on products that grow with the largest rank asked for; above it by the N x N sum
    of the waves, kept at the last two sizes, which are all that a bisection comes back to.
    """

    def __init__(self, law: ExactLaw, pool: FourierMap, X: Tensor) -> None:
        self._law, self._pool, self._X = law, pool, X
        self._pairs = 0
        self._sums: dict[int, Tensor] = {}

    def __call__(self, pairs: int) -> float:
        """The divergence at rank 2 ``pairs``."""
        if 4 * pairs > self._law.n:
            return self._law.kl_to(self._sum(pairs) / pairs)
        self._grow(pairs)
        columns = torch.cat([torch.arange(pairs), self._pairs + torch.arange(pairs)])
        gram, product = self._gram[columns][:, columns], self._product[columns][:, columns]
        return self._law.kl_to_low_rank(gram / pairs, product / pairs)

    def _grow(self, pairs: int) -> None:
        if pairs <= self._pairs:
            return
        self._pairs = min(max(2 * self._pairs, pairs, 16), self._pool.rank // 2)
        waves = self._waves(0, self._pairs)
        self._gram, self._product = waves.mT @ waves, waves.mT @ (self._law.K @ waves)

    def _sum(self, pairs: int) -> Tensor:
        """Sum of the waves' outer products (N, N), from the largest sum at hand that holds no wave too many."""
        base = max((size for size in self._sums if size <= pairs), default=0)
        kept = {base: self._sums[base]} if base else {}
        if pairs > base:
            waves = self._waves(base, pairs)
            added = waves @ waves.mT
            kept[pairs] = kept[base] + added if base else added
        self._sums = kept
        return kept[pairs]

    @torch.no_grad()
    def _waves(self, first: int, last: int) -> Tensor:
        """cos and sin at frequencies first, .., last - 1 of the pool at amplitude one, (N, 2 (last - first))."""
        angle = self._X @ (self._pool.frequencies[first:last] / self._pool.fixed_kernel().values["length_scale"]).mT
        return torch.cat([angle.cos(), angle.sin()], 1)

    def expected_pairs(self, limit: float, draws: int = 400) -> float:
        r"""Number of pairs at which the divergence is ``limit`` in expectation, to second order in Sigma - K.

            E KL = (E |Z'S1^-1 Z|_F^2 - |S1^-1 K|_F^2) / (4 s) + O(s^-2),      Z (N, 2) one wave's cos and sin,

        the first term a mean over ``draws`` of the pool's waves. Not a bound: it says where a search that ended in vain
        would have had to go on.
        """
        draws = min(draws, self._pool.rank // 2)
        half = solve_lower(self._law.factor, self._waves(0, draws)).reshape(self._law.n, 2, draws)
        blocks = torch.einsum("nas,nbs->sab", half, half)
        inverse = torch.cholesky_inverse(self._law.factor)
        explained = eye_like(inverse) - self._law.noise * inverse  # S1^-1 K
        return float((blocks.square().sum((1, 2)).mean() - explained.square().sum()) / (4.0 * limit))


def eigendecomposition_kl(eigenvalues: Array, noise: float) -> Array:
    """KL to the models of the r largest eigenpairs of K itself, r = 0, .., N: 1/2 sum_{i > r} [x_i - ln(1 + x_i)],
    x_i = eigenvalue_i / s2."""
    return 0.5 * _tails(log_excess(np.sort(eigenvalues)[::-1] / noise))


def eigendecomposition_gaps(eigenvalues: Array) -> Array:
    """Tr(K - Sigma) of the same models, r = 0, .., N."""
    return _tails(np.sort(eigenvalues)[::-1])


def _tails(values: Array) -> Array:
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def truncation_kl(Psi: Tensor, rank: int, noise: float) -> float:
    r"""KL between all and the first ``rank`` columns of Psi (N, M): 1/2 sum [e - ln(1 + e)], however small.

    e are the eigenvalues of Psi_2'(Psi_1 Psi_1' + s2 I)^-1 Psi_2; with K = Psi Psi' to rounding this is the KL from
    the exact law, and every term of it is positive.
    """
    first, rest = Psi[:, :rank], Psi[:, rank:]
    L = cholesky(first.mT @ first + noise * eye_like(first.mT @ first), _REMEDY)
    explained = solve_lower(L, first.mT @ rest)
    e = torch.linalg.eigvalsh((rest.mT @ rest - explained.mT @ explained) / noise).clamp_min(0.0)
    return 0.5 * float(log_excess(e.numpy()).sum())


def nested_gaps(Phi: Tensor) -> Array:
    """Tr(K - Phi_r Phi_r') of the first r = 1, .., M columns of Phi (N, M), k(x, x) = 1, with its rounding slack."""
    n = len(Phi)
    kept = Phi.square().sum(0).cumsum(0).numpy()
    return np.asarray(np.maximum(n - kept, 0.0) + accumulation_slack(n, n))


def trace_bounds(gaps: Array, noise: float) -> tuple[Array, Array]:
    """The paper's bound t / 2 and the sharpened 1/2 (t - ln(1 + t)), t = gap / s2, where Sigma <= K."""
    return 0.5 * gaps / noise, np.array([sharpened_trace_bound(float(gap), noise) for gap in gaps])


def first_within(values: Sequence[float] | Array, limit: float) -> int | None:
    """Position of the first value that is at most ``limit``, or None."""
    within = np.flatnonzero(np.asarray(values) <= limit)
    return int(within[0]) if len(within) else None


def smallest(holds: Callable[[int], bool], cap: int) -> int | None:
    """Smallest count up to ``cap`` of a property that stays true once it is, by doubling and bisection; None if none.

    Of a property that is not monotone it finds *a* count at which it holds and before which it does not.
    """
    low, high = 0, 1
    while not holds(high):
        if high == cap:
            return None
        low, high = high, min(2 * high, cap)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
