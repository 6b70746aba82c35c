"""How an estimator is certified: which theorem, through which reference, and in the units of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.checks import check_count, check_fraction, check_positive, check_reference_rank
from certgp.data import Rows, StandardisedRows
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.row_bounds import (
    Confirm,
    all_rows,
    bounds_through_map,
    bounds_through_reference,
    noted_if_not_within,
    noted_if_weak,
    solved_exactly,
    with_predictive_divergence,
    with_rows,
    worst_error,
)
from certgp.estimators.validation import check_engine, generator
from certgp.gp import LowRankProcess, Statistics
from certgp.guarantees import (
    Certificate,
    Interval,
    PointwiseBounds,
    PredictionBounds,
    Problem,
    Reference,
    certify_dominated,
    certify_through,
    growing_references,
    tighten,
)
from certgp.guarantees.pointwise import mean_error_factor
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.training.objective import fold_feature_statistics
from certgp.transforms import Identity

if TYPE_CHECKING:
    from certgp.estimators.low_rank import LowRankRegressor

Array = NDArray[np.float64]
DEFAULT_MAX_REFERENCE_RANK = 1_600
OTHER_ROWS = (
    "these rows are not the ones the model was conditioned on (X or y changed after fit, or others were given); give "
    "the original ones: certify(rows=(X, y)) in Python, --train FILE on the command line"
)
_REFERENCE_FACTOR = 4  # first reference rank, in multiples of the model's
_RELATIVE_HALF_WIDTH = 0.01  # without a tolerance: of the divergence itself
_NEGLIGIBLE_PER_ROW = 1e-7  # nats


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
    source: Callable[[], StandardisedRows],
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
        return _certify_from_training(estimator, X, source if check_rows else None)
    return _certify_from_rows(estimator, X, source(), request)


def _certify_from_training(
    estimator: LowRankRegressor, X: NDArray[np.floating] | None, source: Callable[[], StandardisedRows] | None
) -> Certificate:
    """What the statistics of the fit prove of a map below the kernel; ``source`` is read only to check its rows."""
    process = estimator._process
    if source is not None:
        found = fold_feature_statistics(process.model, source(), check_engine(estimator.engine))
        _check_same_rows(found, process.statistics)
    rounding = process.model.features.rounding()
    certificate = certify_dominated(process.statistics, process.signal_variance, process.noise_variance, rounding)
    certificate = in_units(estimator, process, certificate)
    if X is None:
        return certificate
    own = bounds_through_map(estimator, X, process.model.features, process.statistics, rounding)
    return noted_if_weak(estimator, with_rows(estimator, certificate, X, own, "P1 (pointwise)"))


def _certify_from_rows(
    estimator: LowRankRegressor, X: NDArray[np.floating] | None, rows: StandardisedRows, request: Request
) -> Certificate:
    """What reading the training rows again proves: through a reference and, where asked for, the exact system."""
    process = estimator._process
    if request.reference_rank is not None:
        check_reference_rank("reference_rank", request.reference_rank, rows.n_rows)
    problem = problem_of(estimator, process, rows)
    reference, certificate, bounds = _through_references(estimator, problem, X, request)
    certificate = _tightened(estimator, certificate, reference, rows, request)
    certificate = in_units(estimator, process, certificate)
    if X is None or bounds is None:
        return certificate
    tol, theorem = request.tol, "P1 (pointwise), P4 (dual weights)"
    advice = "raise max_reference_rank, or pass exact_solve=True (conjugate gradients on the exact system)"
    if request.exact_solve is not False and tol is not None and worst_error(estimator, bounds) > tol:
        confirm = request.exact_solve if callable(request.exact_solve) else None
        solved, advice = solved_exactly(estimator, X, reference, tol, confirm)
        if solved is not None:
            bounds, theorem = solved, "C1 (conjugate gradients)"
    certificate = with_rows(estimator, certificate, X, bounds, theorem)
    certificate = with_predictive_divergence(certificate, process, reference, estimator._tensor(X))
    if tol is None:
        return noted_if_weak(estimator, certificate)
    return noted_if_not_within(estimator, certificate, bounds, tol, advice)


def row_pair(rows: object) -> tuple[ArrayLike | Rows, ArrayLike | None]:
    """What ``certify(rows=...)`` takes, a pair (X, y) or rows that hold both, as the arguments of ``load_rows``."""
    if isinstance(rows, Rows):
        return rows, None
    if not isinstance(rows, (tuple, list)) or len(rows) != 2:
        shape = getattr(rows, "shape", None)
        found = type(rows).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise InvalidInputError(f"rows must be the pair (X, y) of the training rows, found {found}")
    return rows[0], rows[1]


def _check_same_rows(found: Statistics, fitted: Statistics) -> None:
    """Do the rows that were read have the statistics that the model was conditioned on?"""
    if not found.close_to(fitted):
        raise NotCertifiableError(OTHER_ROWS)


def problem_of(estimator: LowRankRegressor, process: LowRankProcess, source: StandardisedRows) -> Problem:
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
        bounds = None if X is None else bounds_through_reference(estimator, X, reference)
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
            return worst_error(self._estimator, bounds) <= self._request.tol
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
    estimator: LowRankRegressor,
    certificate: Certificate,
    reference: Reference,
    rows: StandardisedRows,
    request: Request,
) -> Certificate:
    """Statistical tightening, where asked for and where the rigorous interval is too wide."""
    if request.delta is None:
        return certificate
    goal = _Goal(estimator, reference.problem, replace(request, exact_solve=False), predicts=False)
    if goal.is_met(certificate, None):
        return certificate
    inputs, _ = all_rows(rows)
    rng = generator(estimator.random_state).spawn(1)[0]  # the reference was chosen with the stream itself
    return tighten(certificate, reference, inputs, request.delta, request.probes, rng)


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
