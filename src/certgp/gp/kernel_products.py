"""Products with the exact kernel matrix, streamed: no N x N array is ever held."""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.gp.conditionals import PROFILES, is_radial
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF

BLOCK = 1024  # rows and columns of kernel values at a time, by the kernel's own code
COMPILED_BLOCK = 256
_TYPES = {torch.float64: np.float64, torch.float32: np.float32}


class KernelMatrix:
    r"""K = k(X, X) on rows X (N, d) as an operator, and k(x, X) of other rows.

    Kernels that depend on scaled distances alone run as compiled loops on all threads; others by their own code. The
    result does not depend on the number of threads. ``dtype=torch.float32`` computes kernel values and the sums inside
    a block in float32, and adds blocks in float64.

    With weights (N,) it is Q K Q and k(x, X) Q instead, Q = diag(sqrt(weight)): K + s2 Q^-2, the covariance of targets
    with noise s2 / weight, is Q^-1 (Q K Q + s2 I) Q^-1.
    """

    def __init__(self, kernel: Kernel, inputs: Tensor, weight: Tensor | None = None) -> None:
        self.kernel, self.inputs = kernel.detached(), inputs
        self.root = None if weight is None else weight.double().sqrt()  # Q (N,)
        self.is_compiled = is_radial(kernel)
        self._columns: dict[torch.dtype, NDArray[np.floating]] = {}
        if self.is_compiled:
            own = kernel.pick_columns(inputs)
            self._centre = own.mean(0)  # differences of large numbers lose digits

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.inputs.shape[0])

    def multiply(self, V: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """K V (N, k) for V (N, k): every block of one triangle is used for both of its places."""
        right = self._weigh(V)
        return self._weigh(self._multiply_compiled(right, dtype) if self.is_compiled else self._multiply(right, dtype))

    def cross(self, new: Tensor, V: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """k(X*, X) V (n, k) for X* (n, d), V (N, k)."""
        right = self._weigh(V)
        return self._cross_compiled(new, right, dtype) if self.is_compiled else self._cross(new, right, dtype)

    def _weigh(self, V: Tensor) -> Tensor:
        """Q V (N, k)."""
        return V if self.root is None else self.root[:, None] * V

    def combine(self, new: Tensor, weights: Tensor) -> Tensor:
        """k(X, X*) w (N,) for few rows X* (q, d), w (q,): all rows of the matrix, some columns that are not its own."""
        if not self.is_compiled:
            with torch.no_grad():
                parts = [self.inputs[start : start + BLOCK] for start in range(0, self.n_rows, BLOCK)]
                return self._weigh(torch.cat([self.kernel(part, new) @ weights for part in parts])[:, None])[:, 0]
        points, P = np.ascontiguousarray(self._scaled(new).numpy()), self._coordinates(torch.float64)
        out, blocks = np.zeros(self.n_rows), -(-self.n_rows // COMPILED_BLOCK)
        self._run("combine_columns", blocks, torch.float64, points, weights.numpy(), P, out, COMPILED_BLOCK)
        return self._signal * self._weigh(torch.from_numpy(out)[:, None])[:, 0]

    # -------------------- compiled

    def _multiply_compiled(self, V: Tensor, dtype: torch.dtype) -> Tensor:
        P, right = self._coordinates(dtype), _transposed(V, dtype)
        out = np.zeros(right.shape)
        blocks = -(-self.n_rows // COMPILED_BLOCK)
        for turn in range(blocks):
            # the blocks i + j = turn (mod blocks): no block twice in a turn, every pair in one of them
            pairs = np.array([(i, j) for i in range(blocks) if i <= (j := (turn - i) % blocks)])
            self._run("multiply_pairs", len(pairs), dtype, P, right, out, pairs, COMPILED_BLOCK)
        return self._signal * torch.from_numpy(out).mT

    def _cross_compiled(self, new: Tensor, V: Tensor, dtype: torch.dtype) -> Tensor:
        points = np.ascontiguousarray(self._scaled(new).numpy().astype(_TYPES[dtype]))
        right = _transposed(V, dtype)
        out = np.zeros((right.shape[0], len(points)))
        P = self._coordinates(dtype)
        self._run("multiply_cross", len(points), dtype, points, P, right, out, COMPILED_BLOCK)
        return self._signal * torch.from_numpy(out).mT

    def _run(self, name: str, n: int, dtype: torch.dtype, *arguments: object) -> None:
        from certgp.gp import compiled_products
        from certgp.loops import run_over_rows

        single = dtype is torch.float32
        profile = PROFILES[self.kernel.name]
        run_over_rows(vars(compiled_products)[name], n, profile, single, *arguments, rows_per_thread=1)

    def _coordinates(self, dtype: torch.dtype) -> NDArray[np.floating]:
        """(x - centre) / l as (d, N)."""
        if dtype not in self._columns:
            self._columns[dtype] = np.ascontiguousarray(self._scaled(self.inputs).mT.numpy().astype(_TYPES[dtype]))
        return self._columns[dtype]

    def _scaled(self, X: Tensor) -> Tensor:
        """As ``kernels.stationary.scaled_distance`` has them."""
        return (self.kernel.pick_columns(X.double()) - self._centre) / self.kernel.values["length_scale"]

    @property
    def _signal(self) -> float:
        return float(self.kernel.signal_variance)

    # -------------------- by the kernel's own code

    @torch.no_grad()
    def _multiply(self, V: Tensor, dtype: torch.dtype) -> Tensor:
        inputs, right, result = self.inputs.to(dtype), V.to(dtype), torch.zeros_like(V)
        n = len(inputs)
        for i in range(0, n, BLOCK):
            rows, left = slice(i, i + BLOCK), inputs[i : i + BLOCK]
            result[rows] += self.kernel.unit(left, left) @ right[rows]
            for j in range(i + BLOCK, n, BLOCK):
                columns = slice(j, j + BLOCK)
                K = self.kernel.unit(left, inputs[columns])
                result[rows] += K @ right[columns]
                result[columns] += K.mT @ right[rows]
        return self._signal * result

    @torch.no_grad()
    def _cross(self, new: Tensor, V: Tensor, dtype: torch.dtype) -> Tensor:
        inputs, points, right = self.inputs.to(dtype), new.to(dtype), V.to(dtype)
        result = torch.zeros((len(new), V.shape[1]), dtype=V.dtype)
        for i in range(0, len(new), BLOCK):
            for j in range(0, len(inputs), BLOCK):
                columns = slice(j, j + BLOCK)
                result[i : i + BLOCK] += self.kernel.unit(points[i : i + BLOCK], inputs[columns]) @ right[columns]
        return self._signal * result

    # -------------------- cost and rounding

    def seconds_per_product(self, vectors: int = 1, dtype: torch.dtype = torch.float64) -> float:
        """Time of one ``multiply``, from a few of its blocks."""
        part = KernelMatrix(self.kernel, self.inputs[: min(self.n_rows, 4 * BLOCK)])
        V = torch.ones((part.n_rows, vectors), dtype=torch.float64)
        part.multiply(V, dtype)  # the first call loads code and memory
        started = time.perf_counter()
        part.multiply(V, dtype)
        return (time.perf_counter() - started) * (self.n_rows / part.n_rows) ** 2

    def entries_rounding(self) -> float:
        """A bound on how far any entry of k(X*, X) / sf2, as float64 products compute it, may be from the exact one;
        weights apart.
        """
        return float(self.column_rounding().max()) if self.n_rows else 0.0

    def column_rounding(self, columns: Tensor | None = None) -> Tensor:
        r"""The same for each column, (N,), at any X*; or for columns of other rows (q, d), as ``combine`` has them.

        Compiled loops: coordinates z = (x - centre) / l are rounded to 2 u |z|, a distance to 2 u (|z| + |z'|) +
        (d / 2 + 2) u r, and |k'| <= 1, r |k'| <= 1, |z'| <= |z| + r. What follows the distance costs at most 10 u, the
        exponential with its three units in the last place included. Other code takes every block about its own centre.
        """
        columns = self.inputs if columns is None else columns
        if self.is_compiled:
            sizes: Tensor = self._scaled(columns).norm(dim=1)
            d = self._centre.shape[0]
            found: Tensor = (4.0 * sizes + 0.5 * d + 14.0) * (UNIT_ROUNDOFF * (1.0 + 1e-6))
            return found
        parts = [columns[start : start + BLOCK] for start in range(0, len(columns), BLOCK)]
        return torch.cat([torch.full((len(part),), self.kernel.rounding(part), dtype=torch.float64) for part in parts])

    def additions_per_entry(self) -> int:
        """Rounded additions behind one entry of a float64 product: inside a block, then over blocks."""
        block = COMPILED_BLOCK if self.is_compiled else BLOCK
        return min(self.n_rows, block) + self.n_rows // block + 2


def _transposed(V: Tensor, dtype: torch.dtype) -> NDArray[np.floating]:
    return np.ascontiguousarray(V.mT.numpy().astype(_TYPES[dtype]))
