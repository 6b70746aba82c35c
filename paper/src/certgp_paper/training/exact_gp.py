"""The exact GP on all rows of a benchmark set: maximum likelihood with few factorisations of N x N matrices.

[paper, "DNNs for feature extraction": the exact GP on elevators by GPflow, whose kernel it does not name] Here it is
the Gaussian kernel with a length-scale for each column. Fisher scoring begins on 3,000 random rows, goes on with 6,000
and ends with all rows: its steps follow the expected curvature, so that few are needed, though some length-scales are
hardly determined. Evaluations on many rows are in float32. The model that predicts is conditioned in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.linalg import cholesky, log_det_from_cholesky, solve_lower, solve_lower_transposed

Array = NDArray[np.float64]
STAGES = ((3_000, 12), (6_000, 4), (None, 2))  # rows (all: None) and evaluations
_SINGLE_FROM = 4_000  # rows from which evaluations are in float32
_BLOCK = 1_024  # columns of the inverse held at a time
_PROBES = 8  # random vectors that estimate the curvature
_START_FACTORS = (0.5, 1.0, 2.0, 4.0)
_START_RATIO = 0.1
_FLAT = 1e-4  # gradient per row at which a stage ends
_LONGEST_STEP = 1.0  # in logarithms of parameters
_DAMPING = 1e-4  # added to the curvature per row, where a length-scale is hardly determined; more after a bad step


@dataclass(frozen=True, eq=False)
class ExactHyperparameters:
    """What training found, and how far it had come; evidence is negative, logarithmic and per row."""

    length_scale: Array  # (D,)
    noise_ratio: float  # g = noise variance / signal variance
    value: float
    values: tuple[float, ...]  # at each evaluation on all rows
    steepest: float  # largest entry of the gradient, by logarithms of parameters


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


def train_exact_gp(
    X: Array, y: Array, seed: int, stages: Sequence[tuple[int | None, int]] = STAGES
) -> ExactHyperparameters:
    """Length-scales and noise ratio that maximise the evidence of X (N, D), y (N,)."""
    order = np.random.default_rng(seed).permutation(len(y))
    theta = None
    for count, evaluations in stages:
        pick = np.sort(order[:count])
        dtype = torch.float32 if len(pick) >= _SINGLE_FROM else torch.float64
        evidence = ExactEvidence(torch.as_tensor(X[pick], dtype=dtype), torch.as_tensor(y[pick], dtype=dtype), seed)
        theta = _start(evidence) if theta is None else theta
        evidence.values.clear()
        point = _score(evidence, theta, evaluations)
        theta = point.theta
    return ExactHyperparameters(
        length_scale=np.exp(point.theta[:-1]),
        noise_ratio=float(np.exp(point.theta[-1])),
        value=point.value,
        values=tuple(evidence.values),
        steepest=float(np.abs(point.gradient).max()),
    )


def _start(evidence: ExactEvidence) -> Array:
    """The best of a few common length-scales."""
    dimension = evidence.X.shape[1]
    starts = [np.full(dimension + 1, math.log(factor * math.sqrt(dimension))) for factor in _START_FACTORS]
    for start in starts:
        start[-1] = math.log(_START_RATIO)
    return min(starts, key=lambda start: evidence(start).value)


def _score(evidence: ExactEvidence, theta: Array, evaluations: int) -> Evaluation:
    """Fisher scoring: steps along the gradient over the curvature; after one that does not descend, shorter ones."""
    point, damping = evidence(theta), _DAMPING
    for _ in range(evaluations - 1):
        if np.abs(point.gradient).max() < _FLAT:
            break
        step = -np.linalg.solve(point.curvature + damping * np.eye(len(theta)), point.gradient)
        step *= min(1.0, _LONGEST_STEP / np.abs(step).max())
        trial = evidence(point.theta + step)
        point, damping = (
            (trial, max(damping / 10.0, _DAMPING)) if trial.value < point.value else (point, 30.0 * damping)
        )
    return point
