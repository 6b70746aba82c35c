"""The exact GP on all rows of a benchmark set: maximum likelihood with few factorisations of N x N matrices.

[paper, "DNNs for feature extraction": the exact GP on elevators by GPflow, whose kernel it does not name] Here it is
the Gaussian kernel with a length-scale for each column. Training begins where the ELBO of a sparse GP on all rows, a
lower bound on the exact evidence, is largest. From there steps of Fisher scoring on the exact evidence of all rows
follow; they need its gradient and expected curvature. What is learned on a few thousand rows instead is no good start:
there the kernel is less linear, with a much smaller signal variance (26 against 372 and more on elevators).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.estimators import SparseGP
from certgp.kernels import Gaussian
from certgp.linalg import cholesky, log_det_from_cholesky, solve_lower, solve_lower_transposed

Array = NDArray[np.float64]
SPARSE_RANK = 200
STEPS = 1
_BLOCK = 1_024  # columns of the inverse held at a time
_PROBES = 8  # random vectors that estimate the curvature
_FLAT = 1e-4  # gradient per row at which steps end
_LONGEST_STEP = 1.0  # in logarithms of parameters
_DAMPING = 1e-4  # added to the curvature per row, where a length-scale is hardly determined


@dataclass(frozen=True, eq=False)
class ExactTraining:
    """Where training ended, and where it was evaluated last; whoever conditions on all rows compares the two."""

    proposed: Array  # theta after the last step
    evaluated: Evaluation
    values: tuple[float, ...]  # F at each evaluation


@dataclass(frozen=True, eq=False)
class Evaluation:
    """F at some parameters, its gradient and expected curvature."""

    theta: Array  # logarithms of l (D,) and g
    value: float
    gradient: Array  # (D + 1,)
    curvature: Array  # (D + 1, D + 1)


class ExactEvidence:
    r"""Negative log evidence per row of a Gaussian kernel, signal variance maximised out.

    R_ij = exp(-|(x_i - x_j) / l|^2 / 2),   S = R + g I = L L',   a = S^-1 y,   sf2 = y'a / N
    F = 1/2 (1 + log|S| / N + log sf2 + log 2 pi),   N dF/dS = 1/2 (S^-1 - a a' / sf2) = W
    N dF/d log l_d = sum_ij W_ij R_ij (x_id - x_jd)^2 / l_d^2,   N dF/d log g = g tr W

    The factor takes N^3 / 3 operations and is the only N x N matrix; columns of S^-1 below the diagonal come from it in
    blocks, 2 N^3 / 3 operations together. Curvature is Fisher's information, 1/2 tr(S^-1 dS_i S^-1 dS_j):
    the mean over random z of b_i'b_j / 2 with b_i = L^-1 dS_i L^-T z, less what the signal variance takes.
    """

    def __init__(self, X: Tensor, y: Tensor, seed: int = 0) -> None:
        self.X, self.y = X, y
        generator = torch.Generator().manual_seed(seed)
        self._probes = torch.randn(len(y), _PROBES, generator=generator, dtype=X.dtype)
        self.values: list[float] = []  # of all evaluations

    @torch.no_grad()
    def __call__(self, theta: Array) -> Evaluation:
        """F, gradient and curvature at the logarithms of l (D,) and g."""
        n, ratio = len(self.y), float(np.exp(theta[-1]))
        U = self.X / torch.as_tensor(np.exp(theta[:-1]), dtype=self.X.dtype)
        S = torch.empty(n, n, dtype=self.X.dtype)
        for start in range(0, n, _BLOCK):
            S[start : start + _BLOCK] = _correlation(U[start : start + _BLOCK], U)
        S.diagonal().add_(ratio)
        L = cholesky(S, "R + g I (start with more noise)")
        del S
        a = solve_lower_transposed(L, solve_lower(L, self.y))
        signal = float(self.y @ a) / n
        value = 0.5 * (1.0 + float(log_det_from_cholesky(L.double())) / n + math.log(2.0 * math.pi * signal))
        by_lengths, trace = _pull_back(L, U, a, signal)
        self.values.append(value)
        gradient = np.append(by_lengths.numpy(), ratio * trace) / n
        return Evaluation(theta, value, gradient, _information(L, U, self._probes, ratio) / n)


def _correlation(first: Tensor, second: Tensor) -> Tensor:
    """exp(-|u - v|^2 / 2) for scaled rows."""
    squares = first.square().sum(1)[:, None] + second.square().sum(1)[None, :]
    return squares.addmm_(first, second.mT, alpha=-2.0).clamp_min_(0.0).mul_(-0.5).exp_()


def _pull_back(L: Tensor, U: Tensor, a: Tensor, signal: float) -> tuple[Tensor, float]:
    """sum_ij W_ij R_ij (u_id - u_jd)^2 (D,) and tr W, by blocks of columns from the diagonal downwards."""
    n, by_lengths, trace = len(a), torch.zeros(U.shape[1], dtype=torch.float64), 0.0
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        lower, rows, columns = L[start:, start:], U[start:], U[start:end]
        unit = torch.eye(n - start, end - start, dtype=L.dtype)
        W = solve_lower_transposed(lower, solve_lower(lower, unit))  # S^-1, the rows from ``start``
        W = 0.5 * W.sub_(torch.outer(a[start:], a[start:end]) / signal)
        trace += float(W.diagonal().double().sum())
        M = W.mul_(_correlation(rows, columns))
        M[end - start :] *= 2.0  # their mirror images are in no block
        ends = rows.square().mT @ M.sum(1) + columns.square().mT @ M.sum(0)
        by_lengths += (ends - 2.0 * (rows * (M @ columns)).sum(0)).double()
    return by_lengths, trace


def _information(L: Tensor, U: Tensor, Z: Tensor, ratio: float) -> Array:
    """Fisher's information on (log l, log g) with the signal variance unknown, (D + 1, D + 1), from probes Z (N, m).

    dR/d log l_d = R_ij (u_id - u_jd)^2, so dR w = u^2 (R w) - 2 u R (u w) + R (u^2 w), one product with R for all d.
    """
    (n, dimension), m = U.shape, Z.shape[1]
    w = solve_lower_transposed(L, Z)  # (N, m)
    powers = torch.cat([torch.ones(n, 1, dtype=U.dtype), U, U.square()], 1)  # (N, 1 + 2 D)
    right = (powers[:, :, None] * w[:, None, :]).reshape(n, -1)
    left = torch.cat([_correlation(U[i : i + _BLOCK], U) @ right for i in range(0, n, _BLOCK)])
    plain, once, twice = left.reshape(n, -1, m).split([1, dimension, dimension], 1)  # type: ignore[no-untyped-call]
    by_lengths = U.square()[:, :, None] * plain - 2.0 * U[:, :, None] * once + twice
    moved = torch.cat([by_lengths, ratio * w[:, None, :]], 1).reshape(n, -1)
    B = solve_lower(L, moved).reshape(n, dimension + 1, m).double()
    probes = Z.double()
    own = 0.5 * torch.einsum("nim,njm->ij", B, B) / m
    with_signal = 0.5 * torch.einsum("nim,nm->i", B, probes) / m
    return (own - torch.outer(with_signal, with_signal) / (0.5 * probes.square().sum() / m)).numpy()


def train_exact_gp(X: Array, y: Array, seed: int, rank: int = SPARSE_RANK, steps: int = STEPS) -> ExactTraining:
    """Logarithms of length-scales and noise ratio that maximise the evidence of X (N, D), y (N,), in float64."""
    sparse = SparseGP(rank, standardize=False, noise="constant", random_state=seed).fit(X, y)
    kernel = sparse.kernel_
    if not isinstance(kernel, Gaussian):
        raise TypeError(f"a sparse GP with the Gaussian kernel was asked for, found {kernel}")
    lengths = np.broadcast_to(np.asarray(kernel.length_scale), X.shape[1])
    theta: Array = np.log(np.append(lengths, sparse.noise_variance_ / float(kernel.signal_variance)))
    evidence = ExactEvidence(torch.as_tensor(X), torch.as_tensor(y), seed)
    point = evidence(theta)
    for _ in range(steps - 1):
        trial = evidence(_step(point))
        if trial.value >= point.value or np.abs(trial.gradient).max() < _FLAT:
            break
        point = trial
    return ExactTraining(_step(point), point, tuple(evidence.values))


def _step(point: Evaluation) -> Array:
    """One step of Fisher scoring: the gradient over the curvature, no parameter by more than a factor e."""
    damped = point.curvature + _DAMPING * np.eye(len(point.theta))
    step = -np.linalg.solve(damped, point.gradient).astype(np.float64)
    scale = min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))
    moved: Array = point.theta + scale * step
    return moved
