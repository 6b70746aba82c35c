"""The certificate of a local GP: its law over the training rows and its predictions against the exact GP's."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Standardiser
from certgp.errors import NotCertifiableError
from certgp.gp import FullScaleProcess, GaussianProcess, LocalProcess
from certgp.gp.neighbours import earlier_neighbours, search_coordinates
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.guarantees.local_factor import LocalFactor, divergence_below, local_factor
from certgp.guarantees.local_krylov import Krylov
from certgp.guarantees.local_low_rank import (
    ResidualCovariance,
    full_scale_divergence_above,
    full_scale_divergence_by_sample,
)
from certgp.guarantees.local_probes import DEFAULT_PROBES, MOST_STEPS, ProbeBracket, draw_probes
from certgp.guarantees.local_rows import KernelCovariance, RowBounds, bound_rows, divergence_terms
from certgp.guarantees.local_sets import larger_sets, nearest_before
from certgp.guarantees.local_solution import DualWeights, judge_weights
from certgp.guarantees.subject import name_kernel_inputs
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
Rows = NDArray[np.floating]
DEFAULT_DELTA = 0.05
_MOST_KERNEL_VALUES = 2 * 10**9  # to bound all training rows one by one
_LARGER = 2  # times the model's neighbours: sets of the factor
_NEAR = 4  # times the model's neighbours: near sets of single rows
_WIDER = 4  # times that, for rows whose bracket stays wide
_WIDE = 0.05  # of the variance
_MOST_NEAR = 1_000
_SAMPLED = 2_000  # rows of V8+
_TELL_FROM = 20_000  # rows from which on the cost is told beforehand
_SOLVED = 1e-3  # of sqrt(rho'S^-1 rho): means are then known to a thousandth of what the near set leaves open


@dataclass(frozen=True, eq=False)
class LocalProblem:
    """A local GP in standardised units and the factors of its rows: its own sets and larger ones."""

    process: LocalProcess
    own: LocalFactor
    larger: LocalFactor
    covariance: ExactCovariance

    @staticmethod
    def of(process: LocalProcess) -> LocalProblem:
        """The factors of a process; refuses kernels whose diagonal varies."""
        kernel, inputs, s2 = process.kernel, process.inputs.double(), process.noise_variance
        if process.rows.weight is not None:
            raise NotCertifiableError(
                "the bounds on local GPs (V1 to V9) are proven for one noise variance, and these rows have weights; "
                "certify(X, tol=..., exact_solve=True) bounds single predictions all the same, and low-rank models "
                "(SparseGP, MercerGP) certify weighted rows"
            )
        if not kernel.constant_diagonal:
            raise NotCertifiableError(
                f"the prior variance of {kernel!r} varies from row to row, and the bounds (of rounding, above all) are "
                "proven for a constant one; use a kernel whose k(x, x) is constant to certify"
            )
        points, most = process.index.points, max(process.n_rows - 1, 1)
        sets = earlier_neighbours(points, process.train_neighbours)
        larger = larger_sets(points, sets, min(_LARGER * process.train_neighbours, most))
        own, more = (local_factor(kernel, inputs, s2, some) for some in (sets, larger))
        return LocalProblem(process, own, more, ExactCovariance(kernel, inputs, s2))

    @property
    def targets(self) -> Array:
        """y (N,)."""
        return self.process.y.double().numpy()


def certify_local(
    process: LocalProcess,
    standardiser: Standardiser,
    X: Rows | None,
    delta: float | None,
    rng: np.random.Generator,
    tol: float | None = None,
    predicting: GaussianProcess | None = None,
) -> Certificate:
    """KL(exact || local), the exact log evidence and, at rows X, the exact predictions, in the units of y.

    Every training row is bounded where that is affordable and no ``delta`` was given; otherwise random probes bracket
    the divergence with probability 1 - delta. ``tol`` is how well exact means should be known. Bounds at rows X are of
    another process of the same kernel, noise and rows where one is ``predicting``.
    """
    problem = LocalProblem.of(process)
    values = process.n_rows**2 // 2 * min(_NEAR * process.train_neighbours + 1, process.n_rows)
    if delta is None and values <= _MOST_KERNEL_VALUES:
        dual = solve_targets(problem)
        theorem = "V1 (identity), V2 (larger sets), V3 (rows)"
        certificate = _certificate(problem, bracket_rows(problem), dual, theorem)
    else:
        risk = DEFAULT_DELTA if delta is None else delta
        if process.n_rows > _TELL_FROM:
            print(f"certify: {problem.covariance.cost(DEFAULT_PROBES + 1)}", file=sys.stderr, flush=True)
        kl, dual, steps = bracket_probes(problem, risk, DEFAULT_PROBES, rng)
        certificate = _certificate(problem, kl, dual, "V1 (identity), V2 (larger sets), V9 (probes)")
        evidence = {**certificate.evidence, "probes": DEFAULT_PROBES, "products": steps}
        certificate = replace(certificate, confidence=1.0 - risk, evidence=evidence)
    certificate = _in_user_units(problem, certificate, standardiser)
    if X is None:
        return certificate
    certificate = _add_rows(problem, certificate, dual, standardiser, X, predicting or process)
    known = certificate.evidence["mean_resolution"]
    if tol is None or known <= tol:
        return certificate
    text = f"exact means are known to +-{known:.3g}, not to tol={tol:g}: raise train_neighbours or noise_variance"
    return replace(certificate, notes=(*certificate.notes, text))


def certify_full_scale(
    process: FullScaleProcess,
    standardiser: Standardiser,
    X: Rows | None,
    delta: float | None,
    rng: np.random.Generator,
    tol: float | None = None,
) -> Certificate:
    """As ``certify_local``, for low rank plus local: KL(exact || model) from above by V8, or V8+ where there are many
    rows or a ``delta`` is given.
    """
    local, s2, n = process.local, process.noise_variance, process.n_rows
    near = min(_NEAR * max(local.train_neighbours, 1), n)
    certain = delta is None and n**2 // 2 * (near + process.features.rank) <= _MOST_KERNEL_VALUES
    risk = 0.0 if certain else DEFAULT_DELTA if delta is None else delta
    half = None if certain else 0.5 * risk  # one half for each of the two statements that draw at random
    certificate = certify_local(local, standardiser, X, half, rng, tol, process)
    covariance, points = ResidualCovariance(process.kernel, process.features, local.inputs), local.index.points
    sets = earlier_neighbours(points, local.train_neighbours)
    given = (covariance, covariance.augment(local.inputs), points, sets, near, s2)
    if half is None:
        upper, name = full_scale_divergence_above(*given), "V8 (rows)"
    else:
        upper, name = full_scale_divergence_by_sample(*given, _SAMPLED, half, rng), "V8+ (sampled rows)"
    note = (
        f"the model has {process.features.rank} features beside {local.train_neighbours} earlier neighbours of each "
        "row; the exact GP has the same kernel, noise and rows"
    )
    return replace(
        certificate,
        kl=Interval(0.0, upper),
        theorem=f"{name}; of the exact GP: {certificate.theorem}",
        confidence=1.0 - risk,
        notes=(note, *certificate.notes[1:]),
    )


def _certificate(problem: LocalProblem, kl: Interval, dual: DualWeights, theorem: str) -> Certificate:
    own, n = problem.own.log_determinant(), problem.process.n_rows
    log_det = Interval(own.lower - 2.0 * kl.upper, own.upper - 2.0 * kl.lower)
    constant = n * math.log(2.0 * math.pi)
    evidence = Interval(
        -0.5 * (dual.quadratic.upper + log_det.upper + constant),
        -0.5 * (dual.quadratic.lower + log_det.lower + constant),
    )
    found: Mapping[str, float] = {
        "neighbours": problem.own.sets.shape[1],
        "larger_sets": problem.larger.sets.shape[1],
        "rounding_of_kernel": problem.covariance.relative,
        "residual": dual.residual,
    }
    where = name_kernel_inputs(problem.process.transform)
    return Certificate(kl, evidence, n, theorem, found, _assumptions(problem.process), kernel_inputs=where)


def _assumptions(process: LocalProcess) -> tuple[str, ...]:
    if name_kernel_inputs(process.transform) is None:
        return ()
    kind = type(process.transform).__name__.lower()
    return (f"the exact GP meant here has the same {kind} g(x) in front of its kernel: it is a GP on g(x)",)


def _in_user_units(problem: LocalProblem, certificate: Certificate, standardiser: Standardiser) -> Certificate:
    shift, evidence = certificate.n_rows * math.log(standardiser.y_scale), certificate.log_evidence
    assert evidence is not None
    note = (
        f"the local GP's law of y takes the rows in their order, each given its {problem.process.train_neighbours} "
        "nearest earlier ones; the exact GP has the same kernel, noise and rows"
    )
    return replace(certificate, log_evidence=Interval(evidence.lower - shift, evidence.upper - shift), notes=(note,))


def bracket_rows(problem: LocalProblem) -> Interval:
    """V2 and V3 over all training rows, with larger near sets for rows whose bracket is wide: certain."""
    process, own = problem.process, problem.own
    inputs, points, rows = process.inputs.double(), process.index.points, np.arange(process.n_rows)
    covariance = KernelCovariance(process.kernel, inputs)
    lower, upper = 0.5 * np.log(own.lowest / problem.larger.highest), np.full(len(rows), math.inf)
    size = _NEAR * max(process.train_neighbours, 1)
    while len(rows):
        bounds = bound_rows(
            covariance, inputs[torch.from_numpy(rows)], inputs, lambda b: nearest_before(points, int(rows[b]), size),  # noqa: B023
            process.noise_variance, before=rows,
        )  # fmt: skip
        below, above = divergence_terms(own, bounds, rows)
        lower[rows], upper[rows] = np.maximum(lower[rows], below), np.minimum(upper[rows], above)
        wide = _is_wide(bounds, process.noise_variance) & (rows > size)
        if size >= _MOST_NEAR or not wide.any():
            break
        rows, size = rows[wide], min(_WIDER * size, _MOST_NEAR)
    slack = 4.0 * UNIT_ROUNDOFF * len(upper) * float(np.abs(lower).sum() + upper.sum())
    return Interval(max(0.0, float(lower.sum()) - slack), float(upper.sum()) + slack)


def _is_wide(bounds: RowBounds, noise: float) -> NDArray[np.bool_]:
    wide: NDArray[np.bool_] = bounds.upper - bounds.lower > _WIDE * (bounds.upper + noise)
    return wide


def bracket_probes(
    problem: LocalProblem, delta: float, count: int, rng: np.random.Generator
) -> tuple[Interval, DualWeights, int]:
    """V2 and V9 with probability 1 - delta, and weights for the means from the same products; and their number."""
    larger, covariance = problem.larger, problem.covariance
    probes = draw_probes(larger, delta, count, rng)
    start, solves = probes.vectors, bool(np.any(problem.targets))
    if solves:
        start = np.column_stack([start, larger.matrix @ problem.targets])
    krylov = Krylov(larger, covariance, start, probes.substitution)
    bracket = ProbeBracket(problem.own, larger, covariance, probes, krylov)
    krylov.run(bracket.is_narrow, MOST_STEPS)
    if solves:
        krylov.run(lambda spectra: spectra[-1].residual() <= _SOLVED, MOST_STEPS, slice(count, None))
    found = bracket.divergence(krylov.spectra())
    certain = divergence_below(problem.own, larger)
    weights = krylov.solution(count) if solves else np.zeros(larger.n_rows)
    most = 0.5 * float(np.log(problem.own.highest / problem.process.noise_variance).sum())  # d_i* >= s2
    kl = Interval(max(found.lower, certain), max(min(found.upper, most * (1.0 + 1e-9)), certain))
    return kl, judge_weights(covariance, problem.targets, weights), krylov.steps


def solve_targets(problem: LocalProblem) -> DualWeights:
    """Weights for the means alone."""
    y, weights = problem.targets, np.zeros(problem.process.n_rows)
    if np.any(y):
        krylov = Krylov(problem.larger, problem.covariance, (problem.larger.matrix @ y)[:, None], 0.0)
        krylov.run(lambda spectra: spectra[0].residual() <= _SOLVED, MOST_STEPS)
        weights = krylov.solution(0)
    return judge_weights(problem.covariance, y, weights)


def _add_rows(
    problem: LocalProblem,
    certificate: Certificate,
    dual: DualWeights,
    standardiser: Standardiser,
    X: Rows,
    predicting: GaussianProcess,
) -> Certificate:
    """Bounds on single predictions in the units of y."""
    inputs, unit = torch.from_numpy(standardiser.inputs(X)), standardiser.y_scale
    mean, _ = predicting.moments(inputs)
    bounds, error = bound_predictions(problem, inputs, dual)
    distance = np.abs(mean.numpy() - bounds.mean)
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, V5 (variance), V6 (corrected mean)",
        evidence={**certificate.evidence, "mean_resolution": unit * float(error.max(initial=0.0))},
        mean_error=unit * (distance + error),
        mean_error_lower=unit * np.maximum(distance - error, 0.0),
        variance_lower=unit**2 * bounds.lower,
        variance_upper=unit**2 * bounds.upper,
    )


@torch.no_grad()
def bound_predictions(problem: LocalProblem, X: Tensor, dual: DualWeights) -> tuple[RowBounds, Array]:
    """V5 and V6 at rows X (n, D): the exact conditionals, and how far exact means may be from the means in them."""
    process = problem.process
    new, inputs = process.transform(X).double(), process.inputs.double()
    covariance = KernelCovariance(process.kernel, torch.cat([inputs, new]))
    found, rows = np.empty((5, len(new))), np.arange(len(new))
    size = min(max(process.neighbours, _NEAR * max(process.train_neighbours, 1)), process.n_rows)
    while len(rows):
        points = new[torch.from_numpy(rows)]
        near = process.index.nearest(search_coordinates(process.kernel, points), size)
        bounds = bound_rows(
            covariance, points, inputs, lambda b: near[b][near[b] >= 0], process.noise_variance,  # noqa: B023
            y=problem.targets, dual=dual.weights,
        )  # fmt: skip
        found[:, rows] = bounds.lower, bounds.upper, bounds.distance, bounds.mean, bounds.mean_rounding
        if size >= min(_MOST_NEAR, process.n_rows):
            break
        rows, size = rows[_is_wide(bounds, process.noise_variance)], min(_WIDER * size, _MOST_NEAR, process.n_rows)
    result = RowBounds(*found)
    return result, result.distance * dual.residual + result.mean_rounding
