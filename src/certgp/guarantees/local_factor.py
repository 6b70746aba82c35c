r"""Rows conditioned on sets of earlier rows, as a triangular factor: S^-1 ~ W'W, W = D^-1/2 U.  [Vecchia 1988]

Row i of U has 1 in its own place and -v_i in those of its set N_i; d_i is the variance of y_i given y on N_i. With d_i*
the variance given ALL earlier rows,

    KL(exact || local) = 1/2 (sum log d_i - log det S) = 1/2 sum log(d_i / d_i*)                              (V1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from certgp.errors import NotCertifiableError
from certgp.gp.conditionals import condition, coordinates, is_radial
from certgp.guarantees.certificate import Interval
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
_ROWS = 8192  # conditioned at a time
_MOST_ROUNDING = 0.1  # of a covariance, in units of the noise


@dataclass(frozen=True, eq=False)
class LocalFactor:
    """Conditionals of N rows given sets of earlier ones. The floats v_i and d_i are exact numbers here: W is what they
    make; ``rounding`` says how far d_i may be from the exact variance given the set, ``form_rounding`` from u_i'S u_i.
    """

    sets: Indices  # (N, m), -1 for no row
    weights: Array  # v (N, m)
    variances: Array  # d (N,), noise included
    rounding: Array  # (N,)
    form_rounding: Array  # (N,)
    noise_variance: float

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.variances)

    @property
    def lowest(self) -> Array:
        """Bounds (N,) of the exact variances from below: they are never below the noise."""
        return np.maximum(self.variances - self.rounding, self.noise_variance)

    @property
    def highest(self) -> Array:
        """And from above."""
        return self.variances + self.rounding

    def log_determinant(self) -> Interval:
        """sum log d_i, of the exact variances."""
        low, high = np.log(self.lowest), np.log(self.highest)
        slack = 2.0 * self.n_rows * UNIT_ROUNDOFF * (float(np.abs(low).sum()) + float(np.abs(high).sum()))
        return Interval(float(low.sum()) - slack, float(high.sum()) + slack)

    @cached_property
    def matrix(self) -> csr_matrix:
        """W (N, N), lower triangular."""
        n, present, roots = self.n_rows, self.sets >= 0, np.sqrt(self.variances)
        lines = np.concatenate([np.repeat(np.arange(n), present.sum(1)), np.arange(n)])
        columns = np.concatenate([self.sets[present], np.arange(n)])
        entries = np.concatenate([(-self.weights / roots[:, None])[present], 1.0 / roots])
        return csr_matrix((entries, (lines, columns)), shape=(n, n))

    @cached_property
    def transposed(self) -> csr_matrix:
        """W' (N, N)."""
        return self.matrix.T.tocsr()

    @cached_property
    def norm(self) -> float:
        """A bound on the spectral norm of the matrix of |W|: the root of its largest row sum times its largest column
        sum.
        """
        size = abs(self.matrix)
        return math.sqrt(float(size.sum(0).max()) * float(size.sum(1).max())) * (1.0 + 1e-9)

    def solve(self, V: Array) -> Array:
        """W^-1 V (N, k)."""
        return self._substitute("substitute", V)

    def solve_transposed(self, V: Array) -> Array:
        """W'^-1 V (N, k)."""
        return self._substitute("substitute_transposed", V)

    def _substitute(self, name: str, V: Array) -> Array:
        from certgp.guarantees import compiled

        result = np.array(V, order="C")
        vars(compiled)[name](self.sets, self.weights, np.sqrt(self.variances), result)
        return result


@torch.no_grad()
def local_factor(kernel: Kernel, inputs: Tensor, noise_variance: float, sets: Indices) -> LocalFactor:
    """The rows (N, d) in their order, each given the rows of its set, which must come before it."""
    n = len(inputs)
    weights, variances, blank = np.empty(sets.shape), np.empty(n), torch.zeros(n, dtype=torch.float64)
    for part in (slice(start, start + _ROWS) for start in range(0, n, _ROWS)):
        found = condition(kernel, inputs[part], inputs, blank, sets[part], noise_variance, with_weights=True)
        assert found.weights is not None
        variances[part] = found.variance + noise_variance
        weights[part] = np.where(sets[part] >= 0, found.weights, 0.0)
    rounding = conditional_rounding(kernel, inputs, noise_variance, (sets >= 0).sum(1), np.square(weights).sum(1))
    return LocalFactor(sets, weights, variances, *rounding, noise_variance)


def conditional_rounding(
    kernel: Kernel, rows: Tensor, noise: float, counts: Indices, squares: Array
) -> tuple[Array, Array]:
    r"""How far a computed variance given n = ``counts`` rows may be from the exact one, and from u'C u of the computed
    u = (-v, 1), |v|^2 = ``squares``.

    Rounding of the entries and of the factorisation amounts to C + E, |E| <= e, and d = min u'C u: so d moves by at
    most e |u|^2, and u by at most (e / s2) |u|, which adds |C| (e |u| / s2)^2 to u'C u.
    """
    size = float(kernel.signal_variance) + noise
    e = (counts + 1.0) * size * (entry_rounding(kernel, rows) + 4.0 * (counts + 3.0) * UNIT_ROUNDOFF)
    if not e.max(initial=0.0) <= _MOST_ROUNDING * noise:
        raise NotCertifiableError(
            f"rounding of the covariance of {int(counts.max())} rows, {e.max():.2g}, is not small against the noise "
            f"variance {noise:.2g}; raise noise_variance, or bring the inputs to fewer length-scales"
        )
    moved: Array = 2.0 * e * (1.0 + squares)
    return moved, moved * (1.0 + (counts + 1.0) * size * e / noise**2)


def entry_rounding(kernel: Kernel, rows: Tensor) -> float:
    """A bound on how far a correlation between these rows (n, d) may be from the exact one, as ``condition`` and the
    products of this room compute it: coordinates x / l as they are, or the kernel's own code about some centre.
    """
    if not is_radial(kernel):
        return 2.0 * kernel.rounding(rows)  # the spread of some rows is at most twice that of all
    Z = coordinates(kernel, rows.double())
    largest = math.sqrt(float(Z.square().sum(1).max())) if len(Z) else 0.0
    return (largest + 1.0) * (Z.shape[1] + 16) * UNIT_ROUNDOFF


def divergence_below(local: LocalFactor, larger: LocalFactor) -> float:
    """V2: KL(exact || local) >= 1/2 sum log(d_i / d_i'), d_i' given sets that CONTAIN those of the local model."""
    terms = np.log(local.lowest / larger.highest)
    slack = 4.0 * local.n_rows * UNIT_ROUNDOFF * float(np.abs(terms).sum())
    return max(0.0, 0.5 * float(terms.sum()) - slack)
