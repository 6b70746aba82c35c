"""Products with the exact kernel matrix, streamed: no N x N array is ever held."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from certgp.kernels import Kernel

BLOCK = 1024


@torch.no_grad()
def kernel_product(kernel: Kernel, inputs: Tensor, V: Tensor, block: int = BLOCK) -> Tensor:
    """K V for K = k(X, X), X (N, d), V (N, k): blocks of one triangle, each used for both of its places."""
    result = torch.zeros_like(V)
    n = inputs.shape[0]
    for i in range(0, n, block):
        rows, left = slice(i, i + block), inputs[i : i + block]
        K = kernel(left, left)
        result[rows] += K @ V[rows]
        for j in range(i + block, n, block):
            columns = slice(j, j + block)
            K = kernel(left, inputs[columns])
            result[rows] += K @ V[columns]
            result[columns] += K.mT @ V[rows]
    return result


@torch.no_grad()
def cross_product(kernel: Kernel, new: Tensor, inputs: Tensor, v: Tensor, block: int = BLOCK) -> Tensor:
    """k(X*, X) v for X* (n, d), X (N, d), v (N,): (n,)."""
    result = torch.zeros(new.shape[0], dtype=v.dtype)
    for i in range(0, new.shape[0], block):
        for j in range(0, inputs.shape[0], block):
            result[i : i + block] += kernel(new[i : i + block], inputs[j : j + block]) @ v[j : j + block]
    return result


def entries_rounding(kernel: Kernel, inputs: Tensor, block: int = BLOCK) -> float:
    """A bound on how far an entry of k(X*, X) / sf2, as these products compute it, may be from the exact one, for any
    X*: every block of X (N, d) is evaluated about a centre of its own.
    """
    return max(kernel.rounding(inputs[start : start + block]) for start in range(0, len(inputs), block))


def additions_per_entry(n: int, block: int = BLOCK) -> int:
    """Rounded additions behind one entry of a product: inside a block, then over blocks."""
    return min(n, block) + n // block + 1


@torch.no_grad()
def seconds_per_product(kernel: Kernel, inputs: Tensor, vectors: int = 1, block: int = BLOCK) -> float:
    """Time of one ``kernel_product``, from a few of its blocks."""
    n = inputs.shape[0]
    part = inputs[: min(n, 2 * block)]
    V = torch.ones((part.shape[0], vectors), dtype=inputs.dtype)
    kernel_product(kernel, part, V, block)  # the first call loads code and memory
    started = time.perf_counter()
    kernel_product(kernel, part, V, block)
    return (time.perf_counter() - started) * (n / part.shape[0]) ** 2
