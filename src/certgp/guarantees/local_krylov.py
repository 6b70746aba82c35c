r"""Quadratic forms of functions of A = W S W' by Lanczos steps, with proven remainders.  [Golub and Meurant 2010]

W'W ~ S^-1 is a local model's factor (``LocalFactor``), so A is close to the identity and few steps are enough. k steps
from g give orthonormal Q and a tridiagonal T with A Q = Q T + beta q e_k'. For the trial solution
x = |g| Q (T + s)^-1 e_1 of (A + s) x = g, completing the square leaves

    g'(A + s)^-1 g = |g|^2 e_1'(T + s)^-1 e_1 + rho'(A + s)^-1 rho,   rho = -beta |g| c_k(s) q,   c(s) = (T + s)^-1 e_1,

with 0 <= rho'(A + s)^-1 rho <= |rho|^2 / s and <= |W^-1 rho|^2 / s2, because A^-1 = W'^-1 S^-1 W^-1 and S >= s2 I.
Integrated over s >= 0 this brackets g'(-log A)g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from certgp.errors import NotCertifiableError
from certgp.guarantees.certificate import Interval
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.guarantees.local_factor import LocalFactor
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
_BREAKDOWN = 1e-9  # of beta: the space holds all there is, and what is left counts as rounding
_GRID = np.concatenate([[0.0], np.geomspace(1e-13, 1e7, 1200)])
_SHARE = 1.1  # (a + b)^2 <= 1.1 a^2 + 11 b^2


@dataclass(eq=False)
class Column:
    """Lanczos steps from one vector g (N,)."""

    size: float  # |g|^2
    basis: list[Array]  # q_1 .. q_{k+1}
    diagonal: list[float] = field(default_factory=list)  # of T
    beside: list[float] = field(default_factory=list)  # beta_1 .. beta_k, the last one beside T
    defect: float = 0.0  # |computed A Q - Q T - beta q e_k'|_F^2
    ended: bool = False

    def matrix(self) -> Array:
        """T (k, k)."""
        inner = self.beside[: len(self.diagonal) - 1]
        return np.diag(self.diagonal) + np.diag(inner, 1) + np.diag(inner, -1)

    @property
    def left(self) -> float:
        """beta_k, nothing where the steps ended by themselves."""
        return 0.0 if self.ended else self.beside[-1]

    def orthogonality(self) -> float:
        """A bound on |Q'Q - I|."""
        Q = np.stack(self.basis)
        gram = Q @ Q.T - np.eye(len(Q))
        return float(np.linalg.norm(gram)) + 8.0 * len(Q) ** 2 * UNIT_ROUNDOFF * math.log2(2.0 + Q.shape[1])


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What the steps from one vector prove, in exact arithmetic on Q's nearest orthonormal matrix:

    ``error`` bounds |A Q - Q T - beta q e_k'| and so |Q'A Q - T|; ``start`` bounds |g - |g| q_1|^2 / |g|^2's root.
    """

    size: float
    values: Array  # eigenvalues of T
    first: Array  # first components of its eigenvectors
    last: Array  # last components
    left: float
    next_size: float  # |W^-1 q_{k+1}|^2 / s2, a bound on q'A^-1 q
    error: float
    start: float

    def residual(self) -> float:
        """sqrt(rho'A^-1 rho) of what x = |g| Q T^-1 e_1 leaves of A x = g, at most; rounding aside."""
        c = float(np.sum(self.first * self.last / self.values))
        return math.sqrt(self.size * self.next_size) * self.left * abs(c)

    def minus_logarithm(self, smallest: float, largest: float) -> Interval:
        """g'(-log A)g for eigenvalues of A in [smallest, largest]."""
        weights = self.first**2
        middle = -self.size * float(np.sum(weights * np.log(self.values)))
        moved = self.error * float(np.sum(weights / self.values))  # the integral of |c(s)|^2 times |Q'A Q - T|
        moved += 2.0 * self.start * max(-math.log(smallest), math.log(max(largest, 1.0)), 1.0)
        shifted = self.values + _GRID[:, None]
        steps, s = np.diff(_GRID), _GRID[:-1]
        c_last = (self.first * self.last / shifted).sum(1)
        main = np.square(self.left * c_last) * np.minimum(self.next_size, 1.0 / np.maximum(_GRID, 1e-300))
        rounded = self.error**2 * (weights / shifted**2).sum(1) / (smallest + _GRID)
        # both fall with s, at least as s^-2 beyond the grid: sums of left ends and s f(s) are bounds
        beyond = _SHARE * main[-1] + 11.0 * rounded[-1]
        integral = float((steps * (_SHARE * main + 11.0 * rounded)[:-1]).sum()) + float(s[-1] + steps[-1]) * beyond
        return Interval(middle - self.size * moved, middle + self.size * (moved + integral))


class Krylov:
    """Lanczos steps from several vectors at once, which share the kernel values of every product. ``substitution`` is
    the relative rounding of |W^-1 q|.
    """

    def __init__(self, factor: LocalFactor, covariance: ExactCovariance, start: Array, substitution: float) -> None:
        self.factor, self.covariance, self._substitution = factor, covariance, substitution
        sizes = np.square(start).sum(0)
        if not sizes.min() > 0.0:
            raise NotCertifiableError("a start of Lanczos steps is zero")
        self.columns = [Column(float(size), [g / math.sqrt(size)]) for g, size in zip(start.T, sizes, strict=True)]

    @property
    def steps(self) -> int:
        """Products so far."""
        return max(len(column.diagonal) for column in self.columns)

    def run(self, enough: Callable[[list[Spectrum]], bool], most: int, columns: slice = slice(None)) -> list[Spectrum]:
        """Steps of some columns until ``enough`` or the ``most``; what is proven of all of them."""
        while self._step(self.columns[columns]):
            if self.steps >= most or enough(self.spectra()):
                break
        return self.spectra()

    def _step(self, columns: list[Column]) -> bool:
        """One step of those columns that did not end by themselves; was there any?"""
        open_ones = [column for column in columns if not column.ended]
        if not open_ones:
            return False
        Q = np.stack([column.basis[-1] for column in open_ones], 1)
        Y = self.factor.matrix @ self.covariance.multiply(self.factor.transposed @ Q)
        for column, image in zip(open_ones, Y.T, strict=True):
            _extend(column, np.ascontiguousarray(image))
        return True

    def spectra(self) -> list[Spectrum]:
        """What is proven so far."""
        ends = np.stack([column.basis[-1] for column in self.columns], 1)
        sizes = np.square(self.factor.solve(ends)).sum(0)
        return [self._spectrum(column, float(size)) for column, size in zip(self.columns, sizes, strict=True)]

    def _spectrum(self, column: Column, size: float) -> Spectrum:
        values, vectors = np.linalg.eigh(column.matrix())
        if not values[0] > 0.0:
            raise NotCertifiableError("rounding is not small against the noise of this problem; raise noise_variance")
        loss, k = column.orthogonality(), len(values)
        error = math.sqrt(column.defect) + math.sqrt(k) * self.rounding + 2.0 * (self.norm + values[-1] + 1.0) * loss
        error += 16.0 * k * UNIT_ROUNDOFF * float(values[-1])
        size *= (1.0 + self._substitution) ** 2
        next_size = size / (self.covariance.noise_variance * (1.0 - min(self.covariance.relative, 1.0)) + 1e-300)
        return Spectrum(column.size, values, vectors[0], vectors[-1], column.left, next_size, error, 2.0 * loss)

    @property
    def norm(self) -> float:
        """A bound on |A|."""
        return float(self.factor.norm**2 * self.covariance.norm)

    @property
    def rounding(self) -> float:
        """A bound on |computed A q - A q|, |q| = 1: sums of the product with S, and those with W and W'."""
        sums = 4.0 * (self.factor.sets.shape[1] + 4) * UNIT_ROUNDOFF
        return float(self.factor.norm**2 * (self.covariance.spill + sums * self.covariance.norm))

    def solution(self, column: int) -> Array:
        """S^-1 b (N,) approximately, where the column started from W b."""
        one = self.columns[column]
        k = len(one.diagonal)
        c = np.linalg.solve(one.matrix(), np.eye(k)[0]) * math.sqrt(one.size)
        return np.asarray(self.factor.transposed @ (c @ np.stack(one.basis[:k])))


def _extend(column: Column, image: Array) -> None:
    """One Lanczos step, orthogonalised twice against all before."""
    own = column.basis[-1]
    alpha = float(own @ image)
    rest = image.copy()
    basis = np.stack(column.basis)
    for _ in range(2):
        rest -= (basis @ rest) @ basis
    beta = float(np.linalg.norm(rest))
    column.ended = beta <= _BREAKDOWN
    following = np.zeros_like(rest) if column.ended else rest / beta
    gone = image - alpha * own - (0.0 if column.ended else beta) * following
    if column.beside:
        gone -= column.beside[-1] * column.basis[-2]
    column.defect += float(gone @ gone)
    column.diagonal.append(alpha)
    column.beside.append(beta)
    if not column.ended:
        column.basis.append(following)
