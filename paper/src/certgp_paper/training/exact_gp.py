"""The exact GP on all rows of a benchmark set: maximum likelihood with few factorisations of N x N matrices.

[paper, "DNNs for feature extraction": the exact GP on elevators by GPflow, whose kernel it does not name] Here it is
the Gaussian kernel with a length-scale for each column. A quasi-Newton method begins on 2,000 random rows, where it
converges, goes on with 6,000 and ends with all rows; each stage takes over the inverse Hessian of the one before, since
the evidence per row bends alike. Evaluations are in float32. The model that predicts is conditioned in float64.
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
STAGES = ((2_000, 50), (6_000, 5), (None, 2))  # rows (all: None) and evaluations
_BLOCK = 1_024  # columns of the inverse held at a time
_START_FACTORS = (0.5, 1.0, 2.0, 4.0)
_START_RATIO = 0.1
_FLAT = 1e-4  # gradient per row at which a stage ends
_LONGEST_STEP = 1.0  # in logarithms of parameters


@dataclass(frozen=True, eq=False)
class ExactHyperparameters:
    """What training found, and how far it had come; evidence is negative, logarithmic and per row."""

    length_scale: Array  # (D,)
    noise_ratio: float  # g = noise variance / signal variance
    value: float
    values: tuple[float, ...]  # at each evaluation on all rows
    steepest: float  # largest entry of the gradient, by logarithms of parameters


class ExactEvidence:
    r"""Negative log evidence per row of a Gaussian kernel, signal variance maximised out, and its gradient.

    R_ij = exp(-|(x_i - x_j) / l|^2 / 2),   S = R + g I = L L',   a = S^-1 y,   sf2 = y'a / N
    F = 1/2 (1 + log|S| / N + log sf2 + log 2 pi),   N dF/dS = 1/2 (S^-1 - a a' / sf2) = W
    N dF/d log l_d = sum_ij W_ij R_ij (x_id - x_jd)^2 / l_d^2,   N dF/d log g = g tr W

    The factor takes N^3 / 3 operations and is the only N x N matrix; columns of S^-1 below the diagonal come from it in
    blocks, 2 N^3 / 3 operations together.
    """

    def __init__(self, X: Tensor, y: Tensor) -> None:
        self.X, self.y = X, y
        self.values: list[float] = []  # of all evaluations

    @torch.no_grad()
    def __call__(self, theta: Array) -> tuple[float, Array]:
        """F and its gradient at the logarithms of l (D,) and g."""
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
        gradient = np.append(by_lengths.double().numpy(), ratio * trace) / n
        self.values.append(value)
        return value, gradient


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


def train_exact_gp(
    X: Array, y: Array, seed: int, stages: Sequence[tuple[int | None, int]] = STAGES, dtype: torch.dtype = torch.float32
) -> ExactHyperparameters:
    """Length-scales and noise ratio that maximise the evidence of X (N, D), y (N,)."""
    order = np.random.default_rng(seed).permutation(len(y))
    rows, target = torch.as_tensor(X, dtype=dtype), torch.as_tensor(y, dtype=dtype)
    theta, H = None, np.eye(X.shape[1] + 1)
    for count, evaluations in stages:
        pick = torch.from_numpy(np.sort(order[:count]))
        evidence = ExactEvidence(rows[pick], target[pick])
        theta = _start(evidence) if theta is None else theta
        evidence.values.clear()
        point, H = _minimise(evidence, theta, H, evaluations)
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
    return min(starts, key=lambda start: evidence(start)[0])


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters, F there and its gradient."""

    theta: Array
    value: float
    gradient: Array


def _minimise(evidence: ExactEvidence, theta: Array, H: Array, evaluations: int) -> tuple[_Point, Array]:
    """BFGS from an inverse Hessian H, which is returned updated; a step that does not descend is quartered."""

    def at(values: Array) -> _Point:
        return _Point(values, *evidence(values))

    point, share = at(theta), 1.0
    for _ in range(evaluations - 1):
        if np.abs(point.gradient).max() < _FLAT:
            break
        direction = -H @ point.gradient
        longest = np.abs(direction).max()
        trial = at(point.theta + share * min(1.0, _LONGEST_STEP / longest) * direction)
        H = _updated(H, trial.theta - point.theta, trial.gradient - point.gradient)
        point, share = (trial, 1.0) if trial.value < point.value else (point, 0.25 * share)
    return point, H


def _updated(H: Array, step: Array, change: Array) -> Array:
    """The BFGS update of an inverse Hessian by a step along which the gradient grew."""
    curvature = float(step @ change)
    if curvature <= 1e-8 * float(step @ step):
        return H
    left = np.eye(len(step)) - np.outer(step, change) / curvature
    return left @ H @ left.T + np.outer(step, step) / curvature
