"""What to prove about a fitted model, through which theorem and which reference, and how hard to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.checks import check_count, check_fraction, check_positive, check_reference_rank
from certgp.data import Chunk, RowSource, Standardiser
from certgp.engines import Engine, fold_feature_statistics
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.gp import (
    ExactProcess,
    FullScaleProcess,
    GaussianProcess,
    IterativeProcess,
    LocalProcess,
    LowRankProcess,
    Statistics,
)
from certgp.gp.student import StudentNoise
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.dominated import certify_dominated
from certgp.guarantees.iterative import certify_exactly, certify_iterative, with_local_law
from certgp.guarantees.local_certificate import certify_full_scale, certify_local
from certgp.guarantees.pointwise import PointwiseBounds, PredictionBounds, mean_error_factor
from certgp.guarantees.prediction_bounds import (
    Confirm,
    add_predictive_divergence,
    add_row_bounds,
    bound_through_map,
    bound_through_reference,
    note_missed_tolerance,
    note_weak_bounds,
    read_all,
    solve_exactly,
    worst_error,
)
from certgp.guarantees.reference import Problem, Reference, certify_through, check_certifiable, growing_references
from certgp.guarantees.statistical import DEFAULT_PROBES, tighten
from certgp.guarantees.subject import Subject, note_warped_inputs, refusal_of_mixtures

Rows = NDArray[np.floating]
ReadRows = Callable[[], RowSource]
DEFAULT_MAX_REFERENCE_RANK = 1_600
_OTHER_ROWS = (
    "these rows are not the ones the model was conditioned on (X or y changed after fit, or others were given); give "
    "the original ones: certify(rows=(X, y)) in Python, --train FILE on the command line"
)
_NEEDS_ROWS = "exact_solve certifies predictions: pass the rows to predict, certify(X, ...)"
_REFERENCE_FACTOR = 4  # first reference rank, in multiples of the model's
_RELATIVE_HALF_WIDTH = 0.01  # without a tolerance: of the divergence itself
_NEGLIGIBLE_PER_ROW = 1e-7  # nats
_INPUT_NOISE = (
    "the exact GP and this model are compared with constant noise; the noise that depends on the input, which "
    "intervals and densities of observations have, is not covered"
)
_STUDENT = (
    "the exact GP meant here has Gaussian noise and the weights of the rows that the fit with Student-t noise ended "
    "with (row_weights_); the t itself, which intervals and densities of observations have, is not covered"
)


@dataclass(frozen=True)
class Request:
    """What the user asked of ``certify``, checked."""

    reference_rank: int | None = None
    tol: float | None = None
    max_reference_rank: int = DEFAULT_MAX_REFERENCE_RANK
    delta: float | None = None
    probes: int = DEFAULT_PROBES
    exact_solve: bool | Confirm = False
    progress: Callable[[str], None] | None = field(default=None, compare=False)

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

    def tell(self, text: str) -> None:
        """Say what is being done, to whoever wants to know."""
        if self.progress is not None:
            self.progress(text)

    @property
    def plain(self) -> bool:
        """Was nothing asked for?"""
        return self == Request()


def certify(
    process: GaussianProcess,
    standardiser: Standardiser,
    X: Rows | None,
    read_rows: ReadRows,
    request: Request,
    engine: Engine,
    new_generator: Callable[[], np.random.Generator],
    *,
    check_rows: bool = False,
) -> Certificate:
    """The certificate of a fitted process in the units of y.

    ``read_rows`` gives the training rows where they are needed; with ``check_rows`` they are compared with what the
    process was conditioned on in any case. X (n, D) are rows to predict, in the user's units.
    """
    found = _certify(process, standardiser, X, read_rows, request, engine, new_generator, check_rows)
    return note_input_noise(process, note_warped_inputs(standardiser, found))


def note_input_noise(process: GaussianProcess, certificate: Certificate) -> Certificate:
    """Say that nothing is proven of noise(x), where predictions of observations have it."""
    if process.noise_model is None:
        return certificate
    text = _STUDENT if isinstance(process.noise_model, StudentNoise) else _INPUT_NOISE
    if text in certificate.assumptions:
        return certificate
    return replace(certificate, assumptions=(*certificate.assumptions, text))


def _certify(
    process: GaussianProcess,
    standardiser: Standardiser,
    X: Rows | None,
    read_rows: ReadRows,
    request: Request,
    engine: Engine,
    new_generator: Callable[[], np.random.Generator],
    check_rows: bool,
) -> Certificate:
    if isinstance(process, ExactProcess):
        return _certify_exact(process, standardiser, X, read_rows if check_rows else None)
    if isinstance(process, FullScaleProcess | IterativeProcess | LocalProcess):
        if check_rows:
            _check_own_rows(process.rows, read_rows)
        certificate = _certify_exactly(process, standardiser, X, request)
        if certificate is not None:
            return certificate
    if isinstance(process, IterativeProcess):
        certificate = certify_iterative(process, standardiser, X)
        if request.delta is None:
            return certificate
        local = certify_local(process.local, standardiser, None, request.delta, new_generator())
        return with_local_law(certificate, local)
    if isinstance(process, LocalProcess):
        return certify_local(process, standardiser, X, request.delta, new_generator(), request.tol)
    if isinstance(process, FullScaleProcess):
        return certify_full_scale(process, standardiser, X, request.delta, new_generator(), request.tol)
    if not isinstance(process, LowRankProcess):
        raise NotCertifiableError(refusal_of_mixtures("certify()", process))
    if request.exact_solve is not False and X is None:
        raise InvalidInputError(_NEEDS_ROWS)
    check_certifiable(process.model)
    subject = Subject(process, standardiser, engine, new_generator)
    if request.plain and process.model.dominated:
        return _certify_from_statistics(subject, X, read_rows if check_rows else None)
    return _certify_from_rows(subject, X, read_rows(), request)


def _certify_exact(
    process: ExactProcess, standardiser: Standardiser, X: Rows | None, read_rows: ReadRows | None
) -> Certificate:
    """The exact GP is its own truth: every distance is zero."""
    if read_rows is not None:
        _check_own_rows(process.rows, read_rows)
    evidence = process.log_evidence() - process.n_rows * math.log(standardiser.y_scale)
    variance = None
    if X is not None:
        size = default_chunk_rows(process.rank)
        parts = [torch.from_numpy(standardiser.inputs(X[i : i + size])) for i in range(0, len(X), size)]
        found = torch.cat([process.moments(part)[1] for part in parts])
        variance = standardiser.variance_to_user(found.numpy())
    return Certificate(
        kl=Interval(0.0, 0.0),
        reverse_kl=Interval(0.0, 0.0),
        log_evidence=Interval(evidence, evidence),
        n_rows=process.n_rows,
        theorem="X0 (identity)",
        evidence={},
        assumptions=("floating-point rounding of a dense Cholesky factorisation is not accounted for",),
        mean_error=None if variance is None else np.zeros(len(variance)),
        variance_lower=variance,
        variance_upper=variance,
    )


def _certify_exactly(
    process: FullScaleProcess | IterativeProcess | LocalProcess,
    standardiser: Standardiser,
    X: Rows | None,
    request: Request,
) -> Certificate | None:
    """What solving the exact system proves of a process that holds its rows, where that was asked for."""
    if request.exact_solve is False or request.tol is None:
        return None
    if X is None:
        raise InvalidInputError(_NEEDS_ROWS)
    confirm = request.exact_solve if callable(request.exact_solve) else None
    request.tell(f"solving the exact system of {process.n_rows:,} rows")
    return certify_exactly(process, standardiser, X, request.tol, confirm)


def _check_own_rows(held: Chunk, read_rows: ReadRows) -> None:
    """Are the rows that were read those that a process holds, in any order?"""
    given = read_all(read_rows())
    if given.X.shape != held.X.shape or not torch.allclose(_in_order(given), _in_order(held)):
        raise NotCertifiableError(_OTHER_ROWS)


def _in_order(rows: Chunk) -> Tensor:
    """Inputs, targets and weights (N, D + 2), sorted by their columns, the last of them first."""
    together = torch.cat([rows.X, rows.y[:, None], rows.weights()[:, None]], 1)
    return together[torch.from_numpy(np.lexsort(together.numpy().T))]


def _certify_from_statistics(subject: Subject, X: Rows | None, read_rows: ReadRows | None) -> Certificate:
    """What the statistics of the fit prove of a map dominated by the kernel."""
    process = subject.process
    if read_rows is not None:
        found = fold_feature_statistics(process.model, read_rows(), subject.engine)
        _check_same_rows(found, process.statistics)
    rounding = process.model.features.rounding()
    certificate = certify_dominated(process.statistics, process.signal_variance, process.noise_variance, rounding)
    certificate = subject.in_user_units(certificate)
    if X is None:
        return certificate
    own = bound_through_map(subject, X, process.model.features, process.statistics, rounding)
    return note_weak_bounds(subject, add_row_bounds(subject, certificate, X, own, "P1 (pointwise)"))


def _certify_from_rows(subject: Subject, X: Rows | None, rows: RowSource, request: Request) -> Certificate:
    """What reading the training rows again proves: through a reference and, where asked for, the exact system."""
    if request.reference_rank is not None:
        check_reference_rank("reference_rank", request.reference_rank, rows.n_rows)
    reference, certificate, bounds = _through_references(subject, rows, X, request)
    certificate = subject.in_user_units(_tighten(subject, certificate, reference, rows, request))
    certificate = _note_moved_rows(subject, certificate, rows)
    if X is None or bounds is None:
        return certificate
    tol, theorem = request.tol, "P1 (pointwise), P4 (dual weights)"
    advice = "raise max_reference_rank, or pass exact_solve=True (conjugate gradients on the exact system)"
    if request.exact_solve is not False and tol is not None and worst_error(subject, bounds) > tol:
        confirm = request.exact_solve if callable(request.exact_solve) else None
        solved, advice, found = solve_exactly(subject, X, reference, tol, confirm, request.tell)
        if solved is not None:
            bounds, theorem = solved, found
    certificate = add_row_bounds(subject, certificate, X, bounds, theorem)
    certificate = add_predictive_divergence(certificate, subject.process, reference, subject.tensor(X))
    if tol is None:
        return note_weak_bounds(subject, certificate)
    return note_missed_tolerance(subject, certificate, bounds, tol, advice)


def _note_moved_rows(subject: Subject, certificate: Certificate, rows: RowSource) -> Certificate:
    """Say how many training rows the features see elsewhere than the exact GP: they may be most of the divergence."""
    transform = subject.process.model.transform
    if not transform.returns_outliers:
        return certificate

    def count(chunk: Chunk) -> int:
        return int((transform(chunk.X) != chunk.X).any(1).sum())

    moved = subject.engine.fold(count, rows, rows.n_columns)
    if not moved:
        return certificate
    text = (
        f"{moved} of {rows.n_rows} training rows lie far out and are pulled in before the features see them; the exact "
        "GP has them where they are, and the divergence counts that (FourierGP: winsorize=False moves none)"
    )
    return replace(certificate, notes=(*certificate.notes, text))


def _check_same_rows(found: Statistics, fitted: Statistics) -> None:
    """Do the rows that were read have the statistics that the model was conditioned on?"""
    if not found.close_to(fitted):
        raise NotCertifiableError(_OTHER_ROWS)


def _through_references(
    subject: Subject, rows: RowSource, X: Rows | None, request: Request
) -> tuple[Reference, Certificate, PredictionBounds | None]:
    """Double the reference until the goal is met or ``max_reference_rank`` is reached."""
    problem = subject.problem(rows)
    largest = request.reference_rank or request.max_reference_rank
    # a tolerance tells beforehand which ranks are worth reading, so the search may start low
    start = 2 * problem.model.rank if request.tol is not None else _REFERENCE_FACTOR * problem.model.rank
    first = request.reference_rank or min(start, largest)
    goal = _Goal(subject, problem, request, predicts=X is not None)
    request.tell(f"reading a reference of {first:,} features or more over {rows.n_rows:,} rows")
    for reference in growing_references(problem, first, largest, goal.is_promising, subject.new_generator()):
        _check_same_rows(reference.model_statistics, subject.process.statistics)
        request.tell(f"bounding through a reference of {reference.features.rank:,} features, at most {largest:,}")
        certificate = certify_through(reference)
        bounds = None if X is None else bound_through_reference(subject, X, reference)
        if goal.is_met(certificate, bounds):
            break
    return reference, certificate, bounds


class _Goal:
    """When a reference is good enough: the KL half-width per row without X, the error of the means with X."""

    def __init__(self, subject: Subject, problem: Problem, request: Request, predicts: bool) -> None:
        self._subject, self._problem, self._request, self._predicts = subject, problem, request, predicts
        self._divergence = math.inf  # the largest half-width that would do, once a first reference has been read

    def is_met(self, certificate: Certificate, bounds: PredictionBounds | None) -> bool:
        """Judge a reference that was read."""
        self._divergence = certificate.evidence["kl_to_reference"]
        if self._request.tol is not None and bounds is not None:
            return worst_error(self._subject, bounds) <= self._request.tol
        return certificate.evidence["half_width"] <= self._allowed()

    def is_promising(self, gap: float) -> bool:
        """Judge a reference by its trace gap, estimated from a sample, before it is read."""
        sf2, s2 = self._problem.signal_variance, self._problem.noise_variance
        if self._request.tol is not None and self._predicts:
            stats = self._subject.process.statistics.scaled(sf2)
            residual = PointwiseBounds(stats, sf2, s2, self._problem.model.features.rounding()).residual_norm
            return residual * mean_error_factor(gap, sf2, s2) * self._subject.unit <= self._request.tol
        return 0.5 * gap / s2 <= self._allowed()

    def _allowed(self) -> float:
        n = self._problem.source.n_rows
        if self._request.tol is not None:
            return self._request.tol * n
        return max(_RELATIVE_HALF_WIDTH * self._divergence, _NEGLIGIBLE_PER_ROW * n)


def _tighten(
    subject: Subject, certificate: Certificate, reference: Reference, rows: RowSource, request: Request
) -> Certificate:
    """Statistical tightening, where asked for and where the rigorous interval is too wide."""
    if request.delta is None:
        return certificate
    goal = _Goal(subject, reference.problem, replace(request, exact_solve=False), predicts=False)
    if goal.is_met(certificate, None):
        return certificate
    rng = subject.new_generator().spawn(1)[0]  # the reference was chosen with the stream itself
    return tighten(certificate, reference, read_all(rows), request.delta, request.probes, rng)
