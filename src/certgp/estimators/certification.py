"""How an estimator is certified: which theorem, through which reference, and in the units of the data."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from certgp.checks import check_count, check_fraction, check_positive, check_reference_rank
from certgp.data import ArraySource, RowSource
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.validation import check_engine, generator
from certgp.features import FeatureMap
from certgp.gp import LowRankProcess, Statistics
from certgp.guarantees import (
    Certificate,
    CostEstimate,
    ExactSystem,
    Interval,
    PointwiseBounds,
    PredictionBounds,
    Problem,
    Reference,
    certify_dominated,
    certify_through,
    expected_predictive_kl,
    growing_references,
    tighten,
)
from certgp.guarantees.exact_solve import AT_ROUNDING, OUT_OF_PRODUCTS, SOLVED
from certgp.guarantees.pointwise import mean_error_factor
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.training.objective import fold_feature_statistics
from certgp.transforms import Identity

if TYPE_CHECKING:
    from certgp.estimators.low_rank import LowRankRegressor

Array = NDArray[np.float64]
Confirm = Callable[[CostEstimate], bool]
DEFAULT_MAX_REFERENCE_RANK = 1_600
OTHER_ROWS = (
    "these rows are not the ones the model was conditioned on (X or y changed after fit, or others were given); give "
    "the original ones: certify(rows=(X, y)) in Python, --train FILE on the command line"
)
_REFERENCE_FACTOR = 4  # first reference rank, in multiples of the model's
_RELATIVE_HALF_WIDTH = 0.01  # without a tolerance: of the divergence itself
_NEGLIGIBLE_PER_ROW = 1e-7  # nats
_MOST_KERNEL_VALUES = 2 * 10**9
_REMEDIES = {  # by how conjugate gradients ended, after so many products
    SOLVED: "conjugate gradients were solved to it, the rest is rounding; raise tol",
    OUT_OF_PRODUCTS: "conjugate gradients ran out of products ({}); raise max_reference_rank or tol",
    AT_ROUNDING: "conjugate gradients ended at the rounding of float64 after {} products; raise tol or noise_variance",
}


@dataclass(frozen=True)
class Request:
    """What the user asked of ``certify``, checked."""

    reference_rank: int | None = None
    tol: float | None = None
    max_reference_rank: int = DEFAULT_MAX_REFERENCE_RANK
    delta: float | None = None
    probes: int = DEFAULT_PROBES
    exact_solve: bool | Confirm = False

    def __post_init__(self) -> None:
        if self.reference_rank is not None:
            check_count("reference_rank", self.reference_rank)
        check_count("max_reference_rank", self.max_reference_rank)
        check_count("probes", self.probes)
        if self.tol is not None:
            check_positive("tol", self.tol)
        if self.delta is not None:
            check_fraction("delta", self.delta)
        if self.exact_solve is not False and self.tol is None:
            raise InvalidInputError("exact_solve needs tol, the error of a mean in the units of y at which it may stop")
        if not (isinstance(self.exact_solve, bool) or callable(self.exact_solve)):
            raise InvalidInputError(
                f"exact_solve must be True, False or a function of a CostEstimate, found {self.exact_solve!r}"
            )

    @property
    def plain(self) -> bool:
        """Was nothing asked for?"""
        return self == Request()


def certify_fitted(
    estimator: LowRankRegressor,
    X: NDArray[np.floating] | None,
    source: Callable[[], ArraySource],
    request: Request,
    check_rows: bool = False,
) -> Certificate:
    """The certificate of a fitted estimator in the units of y; ``source`` gives its training rows where needed, or
    where they are to be checked in any case.
    """
    process = estimator._process
    if request.exact_solve is not False and X is None:
        raise InvalidInputError("exact_solve certifies predictions: pass the rows to predict, certify(X, ...)")
    if not estimator._in_float64():
        raise NotCertifiableError(
            "float32 features leave rounding errors that the bounds do not cover; fit with dtype='float64' instead"
        )
    estimator._check_certifiable()
    if request.plain and process.model.features.minorises:
        if check_rows:
            _check_same_rows(
                fold_feature_statistics(process.model, source(), check_engine(estimator.engine)), process.statistics
            )
        rounding = process.model.features.rounding()
        certificate = certify_dominated(process.statistics, process.signal_variance, process.noise_variance, rounding)
        certificate = in_units(estimator, process, certificate)
        if X is None:
            return certificate
        own = _reference_bounds(estimator, X, process.model.features, process.statistics, rounding)
        return _noted_if_weak(estimator, _with_rows(estimator, certificate, X, own, "P1 (pointwise)"))
    rows = source()
    if request.reference_rank is not None:
        check_reference_rank("reference_rank", request.reference_rank, rows.n_rows)
    problem = problem_of(estimator, process, rows)
    reference, certificate, bounds = _through_references(estimator, problem, X, request)
    certificate = _tightened(estimator, certificate, reference, rows, request)
    certificate = in_units(estimator, process, certificate)
    if X is None or bounds is None:
        return certificate
    theorem = "P1 (pointwise), P4 (dual weights)"
    advice = "raise max_reference_rank, or pass exact_solve=True (conjugate gradients on the exact system)"
    if request.exact_solve is not False and _worst(estimator, bounds) > _tolerance(request):
        solved, advice = _solved_exactly(estimator, reference, rows, X, request)
        if solved is not None:
            bounds, theorem = solved, "C1 (conjugate gradients)"
    certificate = _with_rows(estimator, certificate, X, bounds, theorem)
    certificate = _with_predictive_divergence(certificate, process, reference, estimator._tensor(X))
    return _noted(estimator, certificate, bounds, request, advice)


def row_pair(rows: object) -> tuple[ArrayLike, ArrayLike]:
    """The pair (X, y) that ``certify(rows=...)`` takes."""
    if not isinstance(rows, (tuple, list)) or len(rows) != 2:
        shape = getattr(rows, "shape", None)
        found = type(rows).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise InvalidInputError(f"rows must be the pair (X, y) of the training rows, found {found}")
    return rows[0], rows[1]


def _check_same_rows(found: Statistics, fitted: Statistics) -> None:
    """Do the rows that were read have the statistics that the model was conditioned on?"""
    if not found.close_to(fitted):
        raise NotCertifiableError(OTHER_ROWS)


@torch.no_grad()
def _with_predictive_divergence(
    certificate: Certificate, process: LowRankProcess, reference: Reference, X: Tensor
) -> Certificate:
    """P2 for the rows at which the low-rank model itself predicts, and how its variance differs from ``predict``'s."""
    inside = ~process.falls_back(X)
    notes, assumptions = list(certificate.notes), list(certificate.assumptions)
    if not bool(inside.all()):
        notes.append(
            f"{int((~inside).sum())} of {len(X)} rows lie outside the training inputs, where predictions fall back to "
            "the prior: the expected predictive KL leaves them out"
        )
    if process.variance_kind == "dtc" or process.noise_scale != 1.0:
        assumptions.append(
            "the expected predictive KL speaks of the low-rank model's own variance; predictions add what "
            "variance='dtc' regains of the prior and what calibration adds to the noise"
        )
    certificate = replace(certificate, notes=tuple(notes), assumptions=tuple(assumptions))
    if not bool(inside.any()):
        return certificate
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, P2 (expected predictive KL)",
        predictive_kl=expected_predictive_kl(reference, X[inside]),
    )


def problem_of(estimator: LowRankRegressor, process: LowRankProcess, source: ArraySource) -> Problem:
    """A fitted process on its rows, in standardised units."""
    return Problem(
        process.model, process.signal_variance, process.noise_variance, source, check_engine(estimator.engine)
    )


def _through_references(
    estimator: LowRankRegressor, problem: Problem, X: NDArray[np.floating] | None, request: Request
) -> tuple[Reference, Certificate, PredictionBounds | None]:
    """Double the reference until the goal is met or ``max_reference_rank`` is reached."""
    largest = request.reference_rank or request.max_reference_rank
    # a tolerance tells beforehand which ranks are worth reading, so the search may start low
    start = 2 * problem.model.rank if request.tol is not None else _REFERENCE_FACTOR * problem.model.rank
    first = request.reference_rank or min(start, largest)
    goal = _Goal(estimator, problem, request, predicts=X is not None)
    for reference in growing_references(problem, first, largest, goal.is_promising, generator(estimator.random_state)):
        _check_same_rows(reference.model_statistics, estimator._process.statistics)
        certificate = certify_through(reference)
        bounds = None if X is None else _bounds_through(estimator, X, reference)
        if goal.is_met(certificate, bounds):
            break
    return reference, certificate, bounds


class _Goal:
    """When a reference is good enough: the KL half-width per row without X, the error of the means with X."""

    def __init__(self, estimator: LowRankRegressor, problem: Problem, request: Request, predicts: bool) -> None:
        self._estimator, self._problem, self._request, self._predicts = estimator, problem, request, predicts
        self._divergence = math.inf  # the largest half-width that would do, once a first reference has been read

    def is_met(self, certificate: Certificate, bounds: PredictionBounds | None) -> bool:
        """Judge a reference that was read."""
        self._divergence = certificate.evidence["kl_to_reference"]
        if self._request.tol is not None and bounds is not None:
            return _worst(self._estimator, bounds) <= self._request.tol
        return certificate.evidence["half_width"] <= self._allowed()

    def is_promising(self, gap: float) -> bool:
        """Judge a reference by its trace gap, estimated from a sample, before it is read."""
        sf2, s2 = self._problem.signal_variance, self._problem.noise_variance
        if self._request.tol is not None and self._predicts:
            stats = self._estimator._process.statistics.scaled(sf2)
            residual = PointwiseBounds(stats, sf2, s2, self._problem.model.features.rounding()).residual_norm
            error = residual * mean_error_factor(gap, sf2, s2)
            return error * self._estimator._standardiser.y_scale <= self._request.tol
        return 0.5 * gap / s2 <= self._allowed()

    def _allowed(self) -> float:
        n = self._problem.source.n_rows
        if self._request.tol is not None:
            return self._request.tol * n
        return max(_RELATIVE_HALF_WIDTH * self._divergence, _NEGLIGIBLE_PER_ROW * n)


def _tightened(
    estimator: LowRankRegressor, certificate: Certificate, reference: Reference, rows: ArraySource, request: Request
) -> Certificate:
    """Statistical tightening, where asked for and where the rigorous interval is too wide."""
    if request.delta is None:
        return certificate
    goal = _Goal(estimator, reference.problem, replace(request, exact_solve=False), predicts=False)
    if goal.is_met(certificate, None):
        return certificate
    inputs, _ = _all_rows(rows)
    rng = generator(estimator.random_state).spawn(1)[0]  # the reference was chosen with the stream itself
    return tighten(certificate, reference, inputs, request.delta, request.probes, rng)


def _solved_exactly(
    estimator: LowRankRegressor, reference: Reference, rows: ArraySource, X: NDArray[np.floating], request: Request
) -> tuple[PredictionBounds | None, str]:
    """Means by conjugate gradients, after their cost was shown (None where the user declined), and what to do where
    they are not known to the tolerance.
    """
    system = ExactSystem(reference, *_all_rows(rows))
    tol = _tolerance(request) / estimator._standardiser.y_scale
    estimate = system.estimate(tol)
    if callable(request.exact_solve):
        if not request.exact_solve(estimate):
            return None, "conjugate gradients were declined; allow them, or raise tol"
    else:
        print(f"certify: {estimate}", file=sys.stderr, flush=True)
    solution = system.solve(tol)
    return system.bounds(solution, estimator._tensor(X)), _REMEDIES[solution.ended].format(solution.products)


def _all_rows(source: RowSource) -> tuple[Tensor, Tensor]:
    chunks = list(source.chunks(source.n_rows))
    return torch.cat([chunk.X for chunk in chunks]).double(), torch.cat([chunk.y for chunk in chunks]).double()


def _reference_bounds(
    estimator: LowRankRegressor,
    X: NDArray[np.floating],
    reference: FeatureMap,
    unit_stats: Statistics,
    map_rounding: float,
) -> PredictionBounds:
    """Bounds on the exact predictions at X through a map below the kernel, in standardised units."""
    process = estimator._process
    sf2 = process.signal_variance
    pointwise = PointwiseBounds(unit_stats.scaled(sf2), sf2, process.noise_variance, map_rounding)
    size, parts = default_chunk_rows(reference.rank), []
    for start in range(0, len(X), size):
        inputs = estimator._tensor(X[start : start + size])
        with torch.no_grad():
            parts.append(pointwise(math.sqrt(sf2) * reference(process.model.transform(inputs))))
    return PredictionBounds(
        torch.cat([part.mean for part in parts]),
        torch.cat([part.mean_error for part in parts]),
        torch.cat([part.variance_lower for part in parts]),
        torch.cat([part.variance_upper for part in parts]),
    )


def _bounds_through(estimator: LowRankRegressor, X: NDArray[np.floating], reference: Reference) -> PredictionBounds:
    """Bounds through a reference; by its dual weights on exact kernel values where N x n of them are few enough."""
    if len(X) * reference.joint.n > _MOST_KERNEL_VALUES:
        return _reference_bounds(estimator, X, reference.features, reference.statistics, reference.map_rounding)
    system = ExactSystem(reference, *_all_rows(reference.problem.source))
    return system.bounds(system.reference_solution(), estimator._tensor(X))


def in_units(estimator: LowRankRegressor, process: LowRankProcess, certificate: Certificate) -> Certificate:
    """The statement about the training rows in the units of y, with what is assumed of the transform."""
    evidence = certificate.log_evidence
    if evidence is not None:
        shift = certificate.n_rows * math.log(estimator._standardiser.y_scale)
        evidence = Interval(evidence.lower - shift, evidence.upper - shift)
    transform = process.model.transform
    assumptions = certificate.assumptions
    if not isinstance(transform, Identity):
        kind = type(transform).__name__.lower()
        assumptions = (
            *assumptions,
            f"the exact GP meant here has the same {kind} g(x) in front of its kernel: it is a GP on g(x)",
        )
    return replace(certificate, log_evidence=evidence, assumptions=assumptions)


def _with_rows(
    estimator: LowRankRegressor,
    certificate: Certificate,
    X: NDArray[np.floating],
    bounds: PredictionBounds,
    theorem: str,
) -> Certificate:
    """Bounds on single predictions in the units of y: the triangle inequality through the reference's means."""
    unit = estimator._standardiser.y_scale
    mean, _ = estimator._process.moments(estimator._tensor(X))
    distance = (mean - bounds.mean).abs()
    if not bool(torch.isfinite(distance + bounds.mean_error + bounds.variance_upper).all()):
        raise NotCertifiableError(
            "the bounds on single predictions left the range of float64; fit with standardize=True, or bring X and y "
            "to ordinary units"
        )
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, {theorem}",
        evidence={**certificate.evidence, "mean_resolution": _worst(estimator, bounds)},
        mean_error=unit * (distance + bounds.mean_error).numpy(),
        mean_error_lower=unit * (distance - bounds.mean_error).clamp_min(0.0).numpy(),
        variance_lower=unit**2 * bounds.variance_lower.numpy(),
        variance_upper=unit**2 * bounds.variance_upper.numpy(),
    )


def _noted_if_weak(estimator: LowRankRegressor, certificate: Certificate) -> Certificate:
    """Say so where a proven error is larger than what is known without any data."""
    deviation = estimator._standardiser.y_scale * math.sqrt(estimator._process.signal_variance)
    weak = 0 if certificate.mean_error is None else int((certificate.mean_error > deviation).sum())
    if weak == 0:
        return certificate
    text = (
        f"on {weak} rows the bound on the mean exceeds the prior's own standard deviation ({deviation:.3g}) and says "
        "little; a better one reads the training rows again: tol in Python, --train FILE --tol E on the command line"
    )
    return replace(certificate, notes=(*certificate.notes, text))


def _noted(
    estimator: LowRankRegressor, certificate: Certificate, bounds: PredictionBounds, request: Request, advice: str
) -> Certificate:
    """Say so where the means are not known to the tolerance, and what would help."""
    if request.tol is None:
        return _noted_if_weak(estimator, certificate)
    if _worst(estimator, bounds) <= request.tol:
        return certificate
    text = f"exact means are known to +-{_worst(estimator, bounds):.3g}, not to tol={request.tol:g}: {advice}"
    return replace(certificate, notes=(*certificate.notes, text))


def _worst(estimator: LowRankRegressor, bounds: PredictionBounds) -> float:
    """The largest error of a reference mean, in the units of y."""
    return float(bounds.mean_error.max()) * estimator._standardiser.y_scale


def _tolerance(request: Request) -> float:
    if request.tol is None:
        raise InvalidInputError("exact_solve needs tol")
    return request.tol
