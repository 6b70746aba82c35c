"""rank="auto": grow nested features until the certified KL divergence per row meets the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certgp.checks import check_count, check_positive
from certgp.data import Rows, StandardisedRows
from certgp.errors import RankWarning, warn_user
from certgp.estimators.certification import DEFAULT_MAX_REFERENCE_RANK, in_units, problem_of
from certgp.estimators.validation import generator
from certgp.gp import LowRankModel, LowRankProcess
from certgp.guarantees import Certificate, Problem, Reference, certify_dominated, certify_through, growing_references
from certgp.training import OptimisationResult

if TYPE_CHECKING:
    from certgp.estimators.planned import PlannedRegressor

AUTOMATIC = "auto"
FIRST_RANK = 16
_REFERENCE_FACTOR = 2
_SHARE = 0.25  # of the tolerance that the width of a reference's interval may take


@dataclass(frozen=True, eq=False)
class _Verdict:
    """What is proven of a fitted process, and the reference through which (None where it certified itself)."""

    certificate: Certificate
    reference: Reference | None

    def meets(self, tolerance: float) -> bool:
        return self.certificate.kl.upper <= tolerance * self.certificate.n_rows


def fit_with_automatic_rank(
    estimator: PlannedRegressor,
    rows: Rows,
    fit_at: Callable[[StandardisedRows, int], tuple[LowRankProcess, OptimisationResult]] | None = None,
) -> tuple[LowRankProcess, OptimisationResult]:
    """Fit at ranks 16, 32, 64, ... until KL(exact || model) / N <= tolerance is proven, then drop what is not needed.

    ``fit_at(rows, rank)``, by default the estimator's own, learns hyper-parameters for each rank. At those of the last
    one the features are cut to the smallest rank that still meets the tolerance. At ``max_rank`` the search ends with a
    warning that says how far it got.
    """
    tolerance, largest = check_positive("tolerance", estimator.tolerance), check_count("max_rank", estimator.max_rank)
    source, own_fit = estimator._source(rows), fit_at is None
    fit_at = fit_at or estimator._fit_at
    rank = min(FIRST_RANK, largest)
    while True:
        usable = estimator._usable_rank(rank)
        process, outcome = fit_at(source, usable)
        verdict = _certified(estimator, problem_of(estimator, process, source), process, tolerance)
        if verdict.meets(tolerance):
            process, certificate = _cut(process, verdict, tolerance)
            break
        stopped = outcome.stopped and own_fit  # elsewhere what was stopped is over, and the search costs no more of it
        if rank >= largest or usable < rank or stopped:
            certificate = verdict.certificate
            _explain(estimator, process.model.rank, certificate, tolerance)
            break
        rank = min(2 * rank, largest)
    estimator._certificate = in_units(estimator, process, certificate)
    return process, outcome


def _certified(estimator: PlannedRegressor, problem: Problem, process: LowRankProcess, tolerance: float) -> _Verdict:
    """The best statement about this process: its own statistics where they suffice, else a reference wide enough."""
    n, s2 = problem.source.n_rows, problem.noise_variance
    own: Certificate | None = None
    if process.model.features.minorises:
        own = certify_dominated(process.statistics, process.signal_variance, s2, process.model.features.rounding())
    best = None if own is None else _Verdict(own, None)
    first = max(_REFERENCE_FACTOR * process.model.rank, 2 * FIRST_RANK)
    largest = max(first, DEFAULT_MAX_REFERENCE_RANK)

    def promising(gap: float) -> bool:
        return 0.5 * gap / s2 <= _SHARE * tolerance * n

    rng = generator(estimator.random_state)
    for reference in growing_references(problem, first, largest, promising, rng, insist=best is None):
        certificate = certify_through(reference)
        if best is None or certificate.kl.upper <= best.certificate.kl.upper:
            best = _Verdict(certificate, reference)
        if certificate.kl.upper <= tolerance * n or certificate.kl.lower > tolerance * n:
            break
    if best is None:
        raise RuntimeError("a model that does not certify itself was not given a reference")
    return best


def _cut(process: LowRankProcess, verdict: _Verdict, tolerance: float) -> tuple[LowRankProcess, Certificate]:
    """The process at the smallest rank, by bisection, that still meets the tolerance at these hyper-parameters.

    Along nested features below the kernel the divergence falls with the rank, so bisection finds the smallest; cos/sin
    pairs are reweighed at each rank and only nearly do, so there it finds a rank that meets the tolerance.
    """
    step, features = process.model.features.group, process.model.features
    sf2, s2, reference = process.signal_variance, process.noise_variance, verdict.reference
    rounding = features.rounding()  # of the leading features it is smaller

    def certificate(rank: int) -> Certificate:
        if reference is not None:
            return certify_through(reference, rank)
        return certify_dominated(process.statistics.picked(features.leading_columns(rank)[0]), sf2, s2, rounding)

    low, high = 0, process.model.rank // step
    while high - low > 1:
        middle = (low + high) // 2
        enough = certificate(step * middle).kl.upper <= tolerance * process.statistics.n
        low, high = (low, middle) if enough else (middle, high)
    return truncated(process, step * high), certificate(step * high)


def truncated(process: LowRankProcess, rank: int) -> LowRankProcess:
    """The process of the leading features at the same hyper-parameters."""
    features = process.model.features
    columns, factor = features.leading_columns(rank)
    model = LowRankModel(process.model.transform, features.leading(rank)).requires_grad_(False)
    stats = process.statistics.picked(columns).scaled(factor)
    cut = LowRankProcess(model, stats, process.signal_variance, process.noise_variance, process.variance_kind)
    cut.box, cut.noise_scale = process.box, process.noise_scale
    return cut


def _explain(estimator: PlannedRegressor, rank: int, certificate: Certificate, tolerance: float) -> None:
    n, narrower = certificate.n_rows, "embedding" if hasattr(estimator, "embedding") else "projection"
    warn_user(
        f"rank='auto' ended at rank {rank} with a certified KL per row between {certificate.kl.lower / n:.3g} and "
        f"{certificate.kl.upper / n:.3g}, which does not meet tolerance={tolerance:g}. Raise max_rank "
        f"(now {estimator.max_rank}) or tolerance; features below the kernel trained with objective='elbo', fewer "
        f"dimensions ({narrower}) and a Gaussian kernel need fewer features",
        RankWarning,
    )
