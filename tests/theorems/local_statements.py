"""What certgp says of local GPs on the problems of ``small_problems``, against dense linear algebra (V1 to V9)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg
import torch
from small_problems import SmallProblem, Statement

import certgp.guarantees as g
import helpers
from certgp.errors import NotCertifiableError, NotPositiveDefiniteError
from certgp.features import NystromMap
from certgp.gp import Statistics
from certgp.gp.local import LocalProcess
from certgp.gp.neighbours import search_coordinates
from certgp.guarantees.local_sets import nearest_before
from certgp.transforms import Identity

NEVER = 1e-9  # the probability with which V9 may fail here: never, in 20,000 problems


class LocalTruth:
    """The exact GP, the local law of y and both their predictions, by dense factorisations of dense kernels."""

    def __init__(self, p: SmallProblem, X_new: torch.Tensor, sets: np.ndarray) -> None:
        n, s2, sf2 = len(p.X), p.noise_variance, p.signal_variance
        every = torch.cat([p.X, X_new]).numpy()
        self.K = sf2 * helpers.dense_kernel(p.kernel, every, every) / float(p.kernel.signal_variance)
        self.S = self.K[:n, :n] + s2 * np.eye(n)
        L = np.linalg.cholesky(self.S)
        self.exact = np.diag(L) ** 2  # d*: given all rows before
        self.log_det = float(np.log(self.exact).sum())
        U, self.local = np.eye(n), np.empty(n)
        for i in range(n):
            near = sets[i][sets[i] >= 0]
            v = scipy.linalg.solve(self.S[np.ix_(near, near)], self.S[near, i], assume_a="pos") if len(near) else []
            U[i, near] = -np.asarray(v)
            self.local[i] = self.S[i, i] - np.asarray(v) @ self.S[near, i]
        precision = U.T @ (U / self.local[:, None])
        self.kl = 0.5 * (np.sum(precision * self.S) - n + np.log(self.local).sum() - self.log_det)  # no use of V1
        y, cross = p.y.numpy(), self.K[n:, :n]
        self.dual = scipy.linalg.cho_solve((L, True), y)
        self.mean = cross @ self.dual
        self.variance = np.diag(self.K)[n:] - np.sum(cross * scipy.linalg.cho_solve((L, True), cross.T).T, axis=1)
        condition = np.trace(self.S) / s2
        self.rounding = 1e-14 * condition * max(1.0, float(np.abs(y).max()) ** 2, sf2) * n


def local_problem(p: SmallProblem) -> tuple[g.LocalProblem, torch.Tensor]:
    """A local GP with few neighbours, and rows to predict inside and far outside the training inputs."""
    rng = np.random.default_rng(int(p.rng.integers(2**32)))
    m = int(rng.integers(1, 16))
    kernel = p.kernel.with_signal_variance(p.signal_variance)
    process = LocalProcess(Identity(p.X.shape[1]), kernel, p.X, p.y, p.noise_variance, m + int(rng.integers(0, 20)), m)
    outside = p.X_new[:2] + float(rng.choice([0.5, 3.0, 20.0])) * (1.0 + p.X.std(0, correction=0))
    return g.LocalProblem.of(process), torch.cat([p.X_new[:3], outside])


def local_statements(p: SmallProblem) -> Iterator[Statement]:
    """Everything that is claimed about the local GP of a problem."""
    with torch.no_grad():
        problem, X_new = local_problem(p)
        truth = LocalTruth(p, X_new, problem.own.sets)
        yield from _row_statements(p, problem, truth)
        yield from _divergence_statements(p, problem, truth)
        yield from _prediction_statements(p, problem, truth, X_new)
        yield from _low_rank_statements(p, problem, truth)


def local_violations(problem: SmallProblem) -> list[str]:
    """As ``small_problems.violations``."""
    found: list[str] = []
    try:
        found.extend(statement.theorem for statement in local_statements(problem) if not statement.slack >= 0.0)
    except (NotCertifiableError, NotPositiveDefiniteError):
        found.append("refused")
    return found


def _divergence_statements(p: SmallProblem, problem: g.LocalProblem, truth: LocalTruth) -> Iterator[Statement]:
    r, own = truth.rounding, problem.own.log_determinant()
    ends = 0.5 * (own.lower - truth.log_det), 0.5 * (own.upper - truth.log_det)
    yield Statement("V1", ends[0] * (1 - 1e-9), truth.kl, ends[1] * (1 + 1e-9), r)
    yield Statement("V2", g.divergence_below(problem.own, problem.larger), truth.kl, np.inf, r)
    certain = g.bracket_rows(problem)
    yield Statement("V3", certain.lower, truth.kl, certain.upper, r)
    rng = np.random.default_rng(int(p.rng.integers(2**32)))
    likely, dual, _ = g.bracket_probes(problem, NEVER, int(rng.integers(1, 12)), rng)
    yield Statement("V9", likely.lower, truth.kl, likely.upper, r)
    yield Statement("V6 evidence", dual.quadratic.lower, float(p.y.numpy() @ truth.dual), dual.quadratic.upper, r)


def _row_statements(p: SmallProblem, problem: g.LocalProblem, truth: LocalTruth) -> Iterator[Statement]:
    """Training rows given all rows before them, through near sets of any size."""
    inputs, points, rows = p.X, problem.process.index.points, np.arange(len(p.X))
    size = int(p.rng.integers(0, 12))
    covariance = g.KernelCovariance(problem.process.kernel, inputs)
    bounds = g.bound_rows(
        covariance, inputs, inputs, lambda b: nearest_before(points, b, size), p.noise_variance, before=rows
    )
    below, above = g.divergence_terms(problem.own, bounds, rows)
    terms = 0.5 * np.log(truth.local / truth.exact)
    worst = int(np.argmin(np.minimum(terms - below, above - terms)))
    yield Statement("V3", below[worst], terms[worst], above[worst], truth.rounding)


def _prediction_statements(
    p: SmallProblem, problem: g.LocalProblem, truth: LocalTruth, X_new: torch.Tensor
) -> Iterator[Statement]:
    r, process, y = truth.rounding, problem.process, p.y.numpy()
    one_step = problem.larger.transposed @ (problem.larger.matrix @ y)
    for weights in (np.zeros(len(y)), one_step):
        dual = g.judge_weights(problem.covariance, y, weights)
        yield Statement("V6 evidence", dual.quadratic.lower, float(y @ truth.dual), dual.quadratic.upper, r)
        near = process.index.nearest(search_coordinates(process.kernel, X_new), int(p.rng.integers(1, 10)))
        bounds = g.bound_rows(
            g.KernelCovariance(process.kernel, torch.cat([p.X, X_new])), X_new, p.X,
            lambda b: near[b][near[b] >= 0], p.noise_variance, y=y, dual=weights,  # noqa: B023
        )  # fmt: skip
        yield from _bounds_hold(bounds, bounds.distance * dual.residual + bounds.mean_rounding, truth)
    bounds, error = g.bound_predictions(problem, X_new, g.solve_targets(problem))
    yield from _bounds_hold(bounds, error, truth)


def _bounds_hold(bounds: g.RowBounds, error: np.ndarray, truth: LocalTruth) -> Iterator[Statement]:
    for i in range(len(error)):
        yield Statement("V5", bounds.lower[i], truth.variance[i], bounds.upper[i], truth.rounding)
        yield Statement("V6", 0.0, abs(truth.mean[i] - bounds.mean[i]), error[i], truth.rounding)


def _low_rank_statements(p: SmallProblem, problem: g.LocalProblem, truth: LocalTruth) -> Iterator[Statement]:
    reference, sf2, s2, r = p.reference, p.signal_variance, p.noise_variance, truth.rounding
    phi = np.sqrt(sf2) * reference(p.X)
    above = g.divergence_above_by_map(problem.own, Statistics.of(phi, p.y), sf2, reference.rounding())
    yield Statement("V4", 0.0, truth.kl, above, r)
    # a map of few features, so that the residual process has something left; few rows, because this check is slow
    n = min(len(p.X), 40)
    X, points, sets = p.X[:n], problem.process.index.points[:n], problem.own.sets[:n]
    few = NystromMap(p.kernel, X[: max(1, n // 4)], jitter=1e-6)
    covariance = g.ResidualCovariance(problem.process.kernel, few, X)
    near = int(p.rng.integers(1, 30))
    bound = g.full_scale_divergence_above(covariance, covariance.augment(X), points, sets, near, s2)
    yield Statement("V8", 0.0, _full_scale_divergence(truth.S[:n, :n], np.sqrt(sf2) * few(X).numpy(), sets), bound, r)


def _full_scale_divergence(S: np.ndarray, phi: np.ndarray, sets: np.ndarray) -> float:
    """KL(exact || low rank + local) by dense matrices."""
    n, R = len(phi), S - phi @ phi.T
    U, d = np.eye(n), np.empty(n)
    for i in range(n):
        near = sets[i][sets[i] >= 0]
        v = np.linalg.solve(R[np.ix_(near, near)], R[near, i]) if len(near) else np.empty(0)
        U[i, near], d[i] = -v, R[i, i] - v @ R[near, i]
    model = phi @ phi.T + np.linalg.inv(U.T @ (U / d[:, None]))
    log_dets = np.linalg.slogdet(model)[1] - np.linalg.slogdet(S)[1]
    return float(0.5 * (np.trace(np.linalg.solve(model, S)) - n + log_dets))
