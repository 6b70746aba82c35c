"""rank="auto": grow nested features until the certified KL divergence per row meets the tolerance, and many more of
them would not predict better.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from certgp.data import Chunk, RowSource
from certgp.errors import RankWarning, warn_user
from certgp.gp import LowRankProcess
from certgp.gp.calibration import gaussian_log_density
from certgp.guarantees.certificate import Certificate
from certgp.guarantees.certify import DEFAULT_MAX_REFERENCE_RANK
from certgp.guarantees.dominated import certify_dominated
from certgp.guarantees.reference import Problem, Reference, certify_through, growing_references, seconds_to_read
from certgp.guarantees.subject import Subject

FIRST_RANK = 16
_REFERENCE_FACTOR = 2
_SHARE = 0.25  # of the tolerance that the width of a reference's interval may take
SCOUT_ROWS = 4_000  # that a fit at a far higher rank looks at
_FAR_RANK, _ROWS_PER_FEATURE = 256, 4  # of such a fit
_FEWEST_ROWS = 500  # below, the closed form flatters fits with many features (docs/decisions/0041)


class RankFit(Protocol):
    """A fit at one rank."""

    @property
    def low_rank(self) -> LowRankProcess:
        """The fitted process."""

    @property
    def interrupted(self) -> bool:
        """Did the user stop it, so that no further fit should follow?"""


F = TypeVar("F", bound=RankFit)


@dataclass(frozen=True, eq=False)
class _Verdict:
    """What is proven of a fitted process, and the reference through which (None where it certified itself)."""

    certificate: Certificate
    reference: Reference | None

    def meets(self, tolerance: float) -> bool:
        return self.certificate.kl.upper <= tolerance * self.certificate.n_rows


class Scout:
    r"""Looks how well many more features predict rows without their own targets.

    A certificate compares a model with the exact GP of the same hyper-parameters. Where a fit at a low rank takes a
    short wave for noise, that exact GP takes it for noise too: the divergence is tiny and the prediction poor, and so
    it may be for several doublings of the rank. So one fit at a far higher rank, on some of the rows, says what is
    there to be found: -log p(y_i | all other rows) on these rows, for it and for the model at hand.
    """

    def __init__(self, fit_at: Callable[[int], RankFit], rows: Chunk, max_rank: int) -> None:
        """``fit_at`` trains on these rows."""
        self._fit_at, self._rows = fit_at, rows
        self._most = min(max_rank, len(rows.y) // _ROWS_PER_FEATURE)
        self._known: tuple[int, NDArray[np.float64]] | None = None  # rank and losses of a far fit

    def finds_enough(self, process: LowRankProcess, rank: int, tolerance: float) -> bool:
        """Do more features not gain more than the tolerance, or than the standard error of what they gain?"""
        far = min(self._most, max(_FAR_RANK, 2 * rank))
        if far <= rank or len(self._rows.y) < _FEWEST_ROWS:
            return True
        if self._known is None or self._known[0] <= rank:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a fit that is thrown away
                self._known = far, leave_one_out_losses(self._fit_at(far).low_rank, self._rows)
        gains = leave_one_out_losses(process, self._rows) - self._known[1]
        error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
        return float(gains.mean()) <= max(tolerance, error)


def leave_one_out_losses(process: LowRankProcess, rows: Chunk) -> NDArray[np.float64]:
    """-log p(y_i | all other rows) (n,) of rows that the process was conditioned on."""
    found = process.leave_one_out(rows.X, rows.y, rows.weight)
    total = found.variance + rows.noise(process.noise_variance)
    return -gaussian_log_density(rows.y.double().numpy(), found.mean.numpy(), total.numpy())


def search_rank(
    fit_at: Callable[[int], F],
    usable_rank: Callable[[int], int],
    subject_of: Callable[[LowRankProcess], Subject],
    source: RowSource,
    tolerance: float,
    max_rank: int,
    scout: Scout,
    has_time_for: Callable[[float], bool] = lambda _: True,
) -> tuple[F, LowRankProcess, Certificate]:
    """Fit at ranks 16, 32, 64, ... until KL(exact || model) / N <= tolerance is proven and the scout finds no more to
    gain, then drop what is not needed.

    ``fit_at(rank)`` learns hyper-parameters for each rank. At those of the last one the features are cut to the
    smallest rank that still meets the tolerance. At ``max_rank`` the search ends with a warning that says how far it
    got, and so it does where ``has_time_for`` so many more seconds says no. The certificate is in the user's units.
    """
    rank = min(FIRST_RANK, max_rank)
    while True:
        usable = usable_rank(rank)
        fit = fit_at(usable)
        process = fit.low_rank
        subject = subject_of(process)
        began = time.perf_counter()
        verdict = _judge(subject, subject.problem(source), tolerance, has_time_for)
        is_largest = rank >= max_rank or usable < rank
        # the next fit and its proof take longer than this proof did
        last = is_largest or fit.interrupted or not has_time_for(time.perf_counter() - began)
        if verdict.meets(tolerance) and (last or scout.finds_enough(process, usable, tolerance)):
            process, certificate = _cut(process, verdict, tolerance)
            break
        if last:
            certificate = verdict.certificate
            _explain(process.model.rank, certificate, tolerance, max_rank if is_largest else None)
            break
        rank = min(2 * rank, max_rank)
    return fit, process, subject.in_user_units(certificate)


def _judge(subject: Subject, problem: Problem, tolerance: float, has_time_for: Callable[[float], bool]) -> _Verdict:
    """The best statement about this process: its own statistics where they suffice, else a reference wide enough, or
    the widest that there is time for.
    """
    process, n, s2 = subject.process, problem.source.n_rows, problem.noise_variance
    best: _Verdict | None = None
    if process.model.dominated:
        rounding = process.model.features.rounding()
        best = _Verdict(certify_dominated(process.statistics, process.signal_variance, s2, rounding), None)
        if not has_time_for(0.0):
            return best
    first = max(_REFERENCE_FACTOR * process.model.rank, 2 * FIRST_RANK)
    largest = max(first, DEFAULT_MAX_REFERENCE_RANK)
    while largest > first and not has_time_for(seconds_to_read(n, largest)):
        largest = max(first, largest // 2)

    def promising(gap: float) -> bool:
        return 0.5 * gap / s2 <= _SHARE * tolerance * n

    for reference in growing_references(
        problem, first, largest, promising, subject.new_generator(), insist=best is None
    ):
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

    Along nested features dominated by the kernel the divergence falls with the rank, so bisection finds the smallest.
    cos/sin pairs are weighed anew at each rank and only nearly do, so there it finds a rank that meets the tolerance.
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
    return process.truncated(step * high), certificate(step * high)


def _explain(rank: int, certificate: Certificate, tolerance: float, max_rank: int | None) -> None:
    """Why the tolerance is missed: the largest rank was reached, or the fit was stopped (None)."""
    n = certificate.n_rows
    advice = "The fit was stopped before it could try more; give it more time, or raise tolerance"
    if max_rank is not None:
        advice = f"Raise max_rank (now {max_rank}) or tolerance"
    warn_user(
        f"rank='auto' ended at rank {rank} with a certified KL per row between {certificate.kl.lower / n:.3g} and "
        f"{certificate.kl.upper / n:.3g}, which does not meet tolerance={tolerance:g}. {advice}; features dominated "
        "by the kernel trained with objective='elbo', fewer dimensions (projection or embedding) and a Gaussian kernel "
        "need fewer features",
        RankWarning,
    )
