"""Products with S = K + s2 I on the training rows, with what rounding does to them."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from certgp.gp.conditionals import PROFILES, coordinates, is_radial
from certgp.gp.kernel_products import COMPILED_BLOCK, KernelMatrix
from certgp.gp.neighbours import TREE_DIMENSIONS
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
# per compiled profile: a bound on |k'| / k up to a distance, beyond which k < 1e-17
_STEEPNESS = {"gaussian": (9.0, 9.0), "matern12": (1.0, 40.0), "matern32": (1.74, 26.0), "matern52": (2.24, 21.0)}
_NOTHING = 1e-17
_ALLOWED = 1e-6  # nats of the log determinant that skipped kernel values may cost


class ExactCovariance:
    r"""S = K + s2 I on transformed rows (N, d), never stored. With float kernel values, products are those of a
    symmetric matrix S~ (and rounded sums):

        (1 - e) S <= S~ <= (1 + e) S,   |computed - S~ v| <= spill |v|

    e = |K~ - K| / s2. Radial kernels: values err in proportion to themselves, so |K~ - K| is a share of the largest row
    sum of K; in up to three dimensions, values that are too small to matter are skipped, block by block.
    """

    def __init__(self, kernel: Kernel, inputs: Tensor, noise_variance: float) -> None:
        self.noise_variance, self.n_rows = noise_variance, len(inputs)
        self._kernel, self._signal = kernel.detached(), float(kernel.signal_variance)
        self._row_sum = math.nan  # the largest of |K~|; known after the first product
        self._blocks = _Blocks(self._kernel, inputs, self._smallest()) if is_radial(kernel) else None
        self._matrix = KernelMatrix(self._kernel, inputs)  # products of other kernels, and how sums are rounded

    def multiply(self, V: Array) -> Array:
        """S V (N, k) for V (N, k)."""
        first = math.isnan(self._row_sum)
        right = np.column_stack([V, np.ones(self.n_rows)]) if first else V
        if self._blocks is None:
            found = self._matrix.multiply(torch.from_numpy(right)).numpy()
        else:
            found = self._signal * self._blocks.multiply(right)
        if first:
            largest = 1.001 * float(found[:, -1].max())
            self._row_sum = self._signal * self.n_rows if self._blocks is None else largest
            found = found[:, :-1]
        return np.asarray(found + self.noise_variance * V)

    def cost(self, vectors: int) -> str:
        """What Lanczos steps from some vectors will take, in words; where values are skipped, less."""
        seconds = self._matrix.seconds_per_product(vectors)
        return (
            f"some 5 to 15 products with the {self.n_rows:,} x {self.n_rows:,} kernel matrix (none stored), each at "
            f"most about {seconds:.0f} s on this machine"
        )

    @property
    def relative(self) -> float:
        """e."""
        n, sf2 = self.n_rows, self._signal
        if self._blocks is None:
            return n * sf2 * self._matrix.entries_rounding() / self.noise_variance
        share = self._blocks.relative_rounding()
        return (share * self._row_sum + n * sf2 * (_NOTHING + self._blocks.skipped)) / self.noise_variance

    @property
    def spill(self) -> float:
        """Of rounded sums, per unit of |v|."""
        additions = self._matrix.additions_per_entry() + 4
        return additions * UNIT_ROUNDOFF * (self._row_sum + self.noise_variance)

    @property
    def norm(self) -> float:
        """A bound on |S|."""
        return self._row_sum + 2.0 * self.noise_variance

    def _smallest(self) -> float:
        """The correlation below which a value may be skipped: N^2 of them move the log determinant by ``_ALLOWED``."""
        return max(_ALLOWED * self.noise_variance / (self._signal * self.n_rows**2), 1e-300)


class _Blocks:
    """Blocks of rows that lie together, and which pairs of them are near enough to matter."""

    def __init__(self, kernel: Kernel, inputs: Tensor, smallest: float) -> None:
        self._profile, self._kernel = PROFILES[kernel.name], kernel
        Z = coordinates(kernel, inputs.double() - inputs.double().mean(0)).numpy()  # large numbers lose digits
        self._spread = math.sqrt(float(np.square(Z).sum(1).max()))
        self.skipped, reach, self._order = 0.0, math.inf, np.arange(len(Z))
        if Z.shape[1] <= TREE_DIMENSIONS and len(Z) > COMPILED_BLOCK:
            self.skipped, reach = smallest, _reach(kernel, smallest)
            self._order = np.asarray(cKDTree(Z, leafsize=COMPILED_BLOCK // 8).indices, dtype=np.int64)
        self._P = np.ascontiguousarray(Z[self._order].T)
        self._turns = _turns(self._P, reach)

    def multiply(self, V: Array) -> Array:
        """u(X, X) V (N, k); every pair is used for both of its places."""
        from certgp.gp import compiled_products
        from certgp.loops import run_over_rows

        right = np.ascontiguousarray(V[self._order].T)
        out = np.zeros(right.shape)
        arguments = (self._profile, False, self._P, right, out)
        for pairs in self._turns:
            run_over_rows(
                compiled_products.multiply_pairs, len(pairs), *arguments, pairs, COMPILED_BLOCK, rows_per_thread=1
            )
        result = np.empty(V.shape)
        result[self._order] = out.T
        return result

    def relative_rounding(self) -> float:
        """A bound on |k~ - k| / k: distances err by u (4 R + (d / 2 + 5) r) as in ``distance_rounding``."""
        steepness, far = _STEEPNESS[self._kernel.name]
        distance = UNIT_ROUNDOFF * (4.0 * self._spread + 4.0 + (0.5 * len(self._P) + 5.0) * far)
        return 2.0 * steepness * distance + 64.0 * UNIT_ROUNDOFF


def _turns(P: Array, reach: float) -> list[Indices]:
    """Pairs of blocks within reach, in turns in which no block occurs twice: blocks i + j = turn (mod their number)."""
    n = P.shape[1]
    starts = np.arange(0, n, COMPILED_BLOCK)
    low, high = (np.stack([f(P[:, s : s + COMPILED_BLOCK], 1) for s in starts]) for f in (np.min, np.max))
    blocks, result = len(starts), []
    for turn in range(blocks):
        i = np.arange(blocks)
        j = (turn - i) % blocks
        i, j = i[i <= j], j[i <= j]
        gaps = np.maximum(np.maximum(low[i] - high[j], low[j] - high[i]), 0.0)
        near = np.sqrt(np.square(gaps).sum(1)) <= reach
        if near.any():
            result.append(np.stack([i[near], j[near]], 1))
    return result


def _reach(kernel: Kernel, value: float) -> float:
    """A distance in length-scales beyond which correlations are below ``value``."""
    line, origin, low, high = type(kernel)(1.0), torch.zeros((1, 1), dtype=torch.float64), 0.0, 2000.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        above = float(line.unit(origin + middle, origin)) > value
        low, high = (middle, high) if above else (low, middle)
    return 1.001 * high
