"""What is proven of an exact GP that was solved iteratively: its means (V7), variances (V5), evidence, divergence."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Standardiser
from certgp.gp.conditionals import condition
from certgp.gp.conjugate_gradients import CostEstimate, ExactSolution, KernelSystem
from certgp.gp.full_scale import FullScaleProcess
from certgp.gp.iterative import IterativeProcess, estimate_cost, solve_exactly
from certgp.gp.local import LocalProcess
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.pointwise import PredictionBounds
from certgp.linalg import UNIT_ROUNDOFF

Rows = NDArray[np.floating]
Confirm = Callable[[CostEstimate], bool]


def certify_iterative(process: IterativeProcess, standardiser: Standardiser, X: Rows | None) -> Certificate:
    """The certificate of an iterative exact GP, in the units of y; with bounds on the predictions at X (n, D)."""
    process.matrix.column_rounding()  # refuses families whose rounding is not known
    n, unit, s2 = process.n_rows, standardiser.y_scale, process.noise_variance
    highest = process.log_determinant + _log_determinant_rounding(process)
    noise = process.local.row_noise
    lowest = float(np.log(noise).sum()) - n**2 * UNIT_ROUNDOFF * float(np.abs(np.log(noise)).max())
    system = KernelSystem(process.matrix, s2, process.y)
    low, high = quadratic_interval(process.solution, system.y, s2)
    constant = n * (math.log(2.0 * math.pi) + 2.0 * math.log(unit))
    certificate = Certificate(
        kl=Interval(0.0, 0.5 * max(highest - lowest, 0.0)),
        log_evidence=Interval(-0.5 * (high + highest + constant), -0.5 * (low + lowest + constant)),
        n_rows=n,
        theorem="V1 (local log-determinant), V7 (quadratic term)",
        evidence={
            "residual": process.solution.length,
            "products": process.solution.products,
            "rounding_slack": process.solution.rounding,
        },
        assumptions=(),
        notes=(
            "means are the exact GP's to the error stated; the divergence is that of the local law of the training "
            "targets, whose log-determinant is bounded from below by the noise alone: delta=0.05 brackets it",
        ),
    )
    return certificate if X is None else _add_rows(process, certificate, standardiser, X)


def with_local_law(certificate: Certificate, local: Certificate) -> Certificate:
    """What is known of the training rows through the certificate of the local law as well, with its confidence."""
    evidence, other = certificate.log_evidence, local.log_evidence
    assert evidence is not None
    assert other is not None
    return replace(
        certificate,
        kl=local.kl,
        log_evidence=Interval(
            max(evidence.lower, other.lower), max(evidence.lower, other.lower, min(evidence.upper, other.upper))
        ),
        theorem=f"{local.theorem}, {certificate.theorem}",
        confidence=local.confidence,
        evidence={**local.evidence, **certificate.evidence},
        notes=local.notes,
    )


def certify_exactly(
    process: FullScaleProcess | IterativeProcess | LocalProcess,
    standardiser: Standardiser,
    X: Rows,
    tol: float,
    confirm: Confirm | None,
) -> Certificate | None:
    """How far the predictions of a process that holds its rows are from exact ones at X (n, D), which are solved for to
    ``tol`` in the units of y after their cost was shown, or confirmed where there is a function for it (None where the
    user declined).
    """
    local = process if isinstance(process, LocalProcess) else process.local
    estimate = estimate_cost(local.kernel, local.inputs)
    if confirm is None:
        print(f"certify: {estimate}", file=sys.stderr, flush=True)
    elif not confirm(estimate):
        return None
    start = process.solution.weights if isinstance(process, IterativeProcess) else None
    solved = solve_exactly(local, tol / standardiser.y_scale, start)
    certificate = certify_iterative(solved, standardiser, X)
    inputs = torch.from_numpy(standardiser.inputs(X))
    distance = standardiser.y_scale * (process.moments(inputs)[0] - solved.means(inputs)).abs().numpy()
    error = certificate.mean_error
    assert error is not None
    return replace(certificate, mean_error=distance + error, mean_error_lower=np.maximum(distance - error, 0.0))


def _add_rows(process: IterativeProcess, certificate: Certificate, standardiser: Standardiser, X: Rows) -> Certificate:
    unit, bounds = standardiser.y_scale, bound_predictions(process, torch.from_numpy(standardiser.inputs(X)))
    error = unit * bounds.mean_error.numpy()
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, V5 (variances), V7 (means)",
        evidence={**certificate.evidence, "mean_resolution": float(error.max(initial=0.0))},
        mean_error=error,
        mean_error_lower=np.zeros(len(error)),
        variance_lower=unit**2 * bounds.variance_lower.numpy(),
        variance_upper=unit**2 * bounds.variance_upper.numpy(),
    )


def quadratic_interval(solution: ExactSolution, y: Tensor, noise_variance: float) -> tuple[float, float]:
    r"""y'S^-1 y = y'a + a'r + r'S^-1 r with 0 <= r'S^-1 r <= |r|^2 / s2, rounding outwards; S = K + s2 I."""
    a = solution.weights
    size = float(a.abs() @ y.abs()) + float(a.norm()) * float(y.norm())
    # of the sums, and of a'r: the residual is known to s times its rounding
    lost = float(a.norm()) * solution.rounding * math.sqrt(noise_variance)
    slack = 4.0 * (len(y) + 8) * UNIT_ROUNDOFF * size + lost
    return solution.quadratic - slack, solution.quadratic + slack + solution.length**2


@torch.no_grad()
def bound_predictions(process: IterativeProcess, X: Tensor) -> PredictionBounds:
    """V7 for the means and V5 for the variances at rows X (n, D), in standardised units."""
    new, kernel, s2 = process.transform(X), process.kernel, process.noise_variance
    system, solution = KernelSystem(process.matrix, s2, process.y), process.solution
    prior = kernel.diagonal(new)
    error = torch.tensor([solution.mean_error(float(each)) for each in prior], dtype=torch.float64)
    largest = math.sqrt(system.largest) * prior.sqrt()  # of the entries of k(x)
    of_means = [system.mean_rounding(solution.weights, each) for each in largest.tolist()]
    rounding = torch.tensor(of_means, dtype=torch.float64)
    most, near = prior.clamp_min(system.largest), process.local.nearest(new)
    noise = process.local.row_noise
    found = condition(kernel, new, process.local.inputs, process.y, near, noise, with_weights=True).weights
    assert found is not None
    variances = []
    for i, present in enumerate(near >= 0):
        point, places = new[i : i + 1], torch.from_numpy(near[i, present])
        c = torch.from_numpy(found[i, present])
        variances.append(_bound_variance(process, point, places, c, float(prior[i]), float(most[i])))
    lower, upper = (torch.tensor(ends, dtype=torch.float64) for ends in zip(*variances, strict=True))
    return PredictionBounds(process.means(X), error + rounding, lower, upper)


def _bound_variance(
    process: IterativeProcess, point: Tensor, places: Tensor, c: Tensor, prior: float, largest: float
) -> tuple[float, float]:
    r"""The exact latent variance at one row from both sides, through any weights c of some rows, at their places:

    v = [k** - 2 k*'c + c'S c] - r'S^-1 r,   r = k* - S c,   0 <= r'S^-1 r <= |r|^2 / s2;
    ``largest`` is at least every covariance that occurs. Where rows have weights, r is Q r, and S is at least s2 Q^-2.
    """
    inputs, s2, kernel = process.local.inputs, process.noise_variance, process.kernel
    weights = process.rows.weights()
    chosen, root, most = inputs[places], weights[places].sqrt(), math.sqrt(float(weights.max()))
    few, columns = torch.cat([point, chosen]), torch.cat([torch.ones(1, dtype=torch.float64), -c])
    r = process.matrix.combine(few, columns)
    r[places] -= s2 * c / root
    # k** - 2 k*'c + c'S c = k** - c'k* - c'r on the near rows
    bracket = prior - float(c @ kernel(chosen, point)[:, 0]) - float((c / root) @ r[places])
    sums = (len(few) + 8) * UNIT_ROUNDOFF
    each = largest * float(columns.abs() @ (process.matrix.column_rounding(few) + sums))  # the rounding of each r_i
    each += 4.0 * UNIT_ROUNDOFF * s2 * float((c / root.square()).abs().max()) if len(chosen) else 0.0
    slack = float(columns.abs().sum()) * (4.0 * each + largest * kernel.rounding(point)) + 8.0 * UNIT_ROUNDOFF * prior
    left = (float(r.norm()) * (1.0 + 1e-12) + most * math.sqrt(len(r)) * each) ** 2 / s2
    return max(bracket - left - slack, 0.0), min(bracket + slack, prior * (1.0 + 4.0 * UNIT_ROUNDOFF))


def _log_determinant_rounding(process: IterativeProcess) -> float:
    r"""How far sum_i log d_i as computed may be below its exact value.

    A Cholesky factor of m + 1 rows is that of C + E, |E| <= (m + 2) u Tr C beside the rounding of the entries; d = u'Cu
    with |u|^2 <= d / s2 then moves by at most |E| / s2 of itself.
    """
    m = max(process.local.neighbours, process.local.train_neighbours) + 1
    noise = process.local.row_noise
    largest = float(process.kernel.diagonal(process.local.inputs).max()) + float(noise.max())
    entries = process.matrix.entries_rounding() + 4.0 * (m + 2) * UNIT_ROUNDOFF
    share = m * largest * entries / float(noise.min())
    return 2.0 * process.n_rows * share + process.n_rows**2 * UNIT_ROUNDOFF * (1.0 + abs(math.log(largest)))
