"""What float64 arithmetic may hide from a bound, and how bounds allow for it."""

from __future__ import annotations

import math

from certgp.errors import NotCertifiableError
from certgp.gp import LowRankPosterior, Statistics
from certgp.gp.evidence import trace_gap
from certgp.linalg import UNIT_ROUNDOFF, solve_lower


def accumulation_slack(n: int, size: float) -> float:
    """Worst-case rounding of a float64 sum of n terms that is at most ``size``, summed in chunks and then over chunks.

    A chunk has at most 65,536 rows and there are at most n / 1024 chunks; each addition errs by u = 2^-53 relative to
    the running sum, and each feature by a few hundred u.
    """
    additions = min(n, 65_536) + n / 1024 + 1_000
    return additions * UNIT_ROUNDOFF * size


def gap_slack(n: int, kernel_trace: float, map_rounding: float) -> float:
    """How far rounding may bring Tr(K - Phi Phi') of n rows below its exact value, Tr K being N sf2, or sf2 times the
    sum of the weights; ``map_rounding`` is the feature map's own part (``FeatureMap.rounding``).
    """
    return accumulation_slack(n, kernel_trace) + kernel_trace * map_rounding


def certified_gap(stats: Statistics, map_rounding: float) -> float:
    """An upper bound on tau = Tr(K - Phi Phi') = Tr K - Tr A, for a map dominated by the kernel; rounding included.

    Features that exceed the kernel by more than rounding explains are no basis for a bound.
    """
    found = trace_gap(stats)
    slack = gap_slack(stats.n, stats.kernel_trace, map_rounding)
    if not found >= -slack:
        raise NotCertifiableError(
            f"the features of {stats.n} rows exceed the kernel by {-found:.2g} in all, rounding explains {slack:.2g}: "
            "float64 cannot hold this problem. Raise jitter, noise_variance or length_scale"
        )
    return max(0.0, found) + slack


def solution_rounding(stats: Statistics, noise_variance: float) -> float:
    r"""rho such that phi'C^-1 phi as computed is within a factor 1 +- rho of the exact one, C = A + s2 I.

    The factor of C, the solve with it and the sums in A amount to C + E with |E| <= e s2,

        e s2 = (3 r + 1) u Tr C + (rounding of Tr A),

    and C >= s2 I, so the relative error is at most rho = e / (1 - e); infinite where that says nothing.
    """
    trace = float(stats.A.diagonal().sum())
    factor = (3 * stats.rank + 1) * UNIT_ROUNDOFF * (trace + stats.rank * noise_variance)
    e = (factor + accumulation_slack(stats.n, trace)) / noise_variance
    return e / (1.0 - e) if e < 1.0 else math.inf


def weights_error(stats: Statistics, posterior: LowRankPosterior) -> float:
    r"""A bound on |w - C^-1 b| in the norm of C = A + s2 I, for weights w that were computed, whichever way:

        |w - C^-1 b|_C = |b - C w|_{C^-1} <= |L^-1 (b - C w)| + (rounding of A w, b and the residual) / s.

    From the residual, not from the conditioning of C: Cholesky solves are far better than its worst case.
    """
    w, s2 = posterior.weights, posterior.noise_variance
    trace, size = float(stats.A.diagonal().sum()), float(w.norm())
    residual = stats.b - stats.A @ w - s2 * w
    found, relative = float(residual.norm()) / math.sqrt(s2), solution_rounding(stats, s2)  # C >= s2 I in any case
    if math.isfinite(relative):
        found = min(found, float(solve_lower(posterior.factor, residual).norm()) * (1.0 + relative))
    lost = accumulation_slack(stats.n, trace * size + math.sqrt(trace) * math.sqrt(stats.yty))
    lost += (stats.rank + 3) * UNIT_ROUNDOFF * ((trace + s2) * size + float(stats.b.norm()))
    return found + lost / math.sqrt(s2)


def log_weights_size(stats: Statistics, signal_variance: float) -> float:
    """A bound on sum_i |ln weight_i|, so that the rounding of sum_i ln weight_i is known; the kernel's diagonal is sf2.

    |x| = 2 max(x, 0) - x, and max(ln w, 0) <= w.
    """
    if stats.log_weights == 0.0:
        return 0.0
    return 2.0 * stats.kernel_trace / signal_variance - stats.log_weights


def divergence_rounding(n: int, rank: int, kernel_trace: float, noise_variance: float) -> float:
    """Rounding of a divergence from Gram matrices of n rows and ``rank`` features in all.

    Log determinants and traces of C^-1 G move by Tr(C^-1 E) <= sqrt(r) |E|_F / s2, |E|_F at most the rounding of the
    trace.
    """
    return math.sqrt(rank) * accumulation_slack(n, n + kernel_trace / noise_variance)
