"""Starting inducing points for Nystrom features."""

from __future__ import annotations

import numpy as np
import torch
from scipy.cluster.vq import kmeans2
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.kernels import Kernel

INDUCING_METHODS = ("greedy", "kmeans")


def inducing_points(method: str, kernel: Kernel, X: Tensor, rank: int, rng: np.random.Generator) -> Tensor:
    """At most ``rank`` inducing points (r, d) for X (n, d) by the name of the method."""
    if method == "greedy":
        return greedy_inducing_points(kernel, X, rank)
    if method == "kmeans":
        return kmeans_inducing_points(X, rank, rng)
    raise InvalidInputError(f"unknown inducing {method!r}; choose one of {', '.join(INDUCING_METHODS)}")


def greedy_inducing_points(kernel: Kernel, X: Tensor, rank: int, tolerance: float = 1e-12) -> Tensor:
    """The rows of ``greedy_rows`` themselves."""
    return X[greedy_rows(kernel, X, rank, tolerance)].clone()


@torch.no_grad()
def greedy_rows(kernel: Kernel, X: Tensor, rank: int, tolerance: float = 1e-12) -> list[int]:
    """Numbers of rows of X picked by pivoted Cholesky: each is the one the others explain least, so the trace gap falls
    greedily.

    O(n r^2) with one n x r array. Stops early when nothing is left to explain (duplicate rows), so it may return fewer
    points.
    """
    unit = kernel.with_signal_variance(1.0)
    residual = unit.diagonal(X)
    columns = torch.empty((rank, X.shape[0]), dtype=torch.float64)
    chosen: list[int] = []
    for step in range(rank):
        pivot = int(residual.argmax())
        if float(residual[pivot]) <= tolerance:
            break
        column = unit(X, X[pivot : pivot + 1])[:, 0] - columns[:step].mT @ columns[:step, pivot]
        columns[step] = column / residual[pivot].sqrt()
        residual = (residual - columns[step].square()).clamp_min_(0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return chosen


def kmeans_inducing_points(X: Tensor, rank: int, rng: np.random.Generator, iterations: int = 20) -> Tensor:
    """k-means centres of the distinct rows of X (k-means++ start, Lloyd's iterations)."""
    distinct = np.unique(X.numpy(), axis=0)
    if len(distinct) <= rank:
        return torch.from_numpy(distinct)
    centres, _ = kmeans2(distinct, rank, iter=iterations, minit="++", seed=rng, missing="warn")
    return torch.from_numpy(np.unique(centres, axis=0))
