"""Certificates for maps dominated by the kernel (Mercer, Nystrom): deterministic, from the statistics alone.
[theory 3.3, 7.6]"""

from __future__ import annotations

import math

from certgp.gp import Statistics, log_evidence_lower_bound, log_evidence_upper_bound
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.rounding import accumulation_slack, certified_gap, gap_slack, log_weights_size
from certgp.guarantees.row_losses import RowLosses, log_determinant_bound, reverse_divergence_bound
from certgp.guarantees.scalars import log_excess

OWN, REVERSE = "K2 (sharpened trace bound)", "K3 (reverse divergence)"


def sharpened_trace_bound(gap: float, noise_variance: float) -> float:
    r"""KL(exact || model) <= 1/2 (t - ln(1 + t)), t = Tr(K - Phi Phi') / s2, where 0 <= Phi Phi' <= K.

    With e_i >= 0 the eigenvalues of S2^-1/2 (K - Phi Phi') S2^-1/2: KL = 1/2 sum (e_i - ln(1 + e_i)) exactly; sum e_i
    <= t because S2 >= s2 I, prod (1 + e_i) >= 1 + sum e_i, and T - ln(1 + T) grows with T. Always below the paper's t
    / 2.
    """
    return 0.5 * float(log_excess(gap / noise_variance)) * (1.0 + 1e-14)  # outwards: the function itself rounds


def reverse_bound(gap: float, noise_variance: float, n: int, losses: RowLosses | None) -> float:
    """KL(model || exact) at most, from the trace gap and, where the rows were read, from their losses."""
    most = reverse_divergence_bound(gap, noise_variance, n)
    return most if losses is None else min(most, losses.reverse_divergence)


def certify_dominated(
    unit_stats: Statistics,
    signal_variance: float,
    noise_variance: float,
    map_rounding: float = 0.0,
    losses: RowLosses | None = None,
) -> Certificate:
    """Bound the KL divergence in both directions and bracket the exact log evidence of the rows behind the
    statistics; ``losses`` of these rows, where they were read, sharpen what the statistics alone prove.

    ``map_rounding`` is what the feature map says of its own arithmetic (``FeatureMap.rounding``).
    """
    stats, n = unit_stats.scaled(signal_variance), unit_stats.n
    slack = gap_slack(n, stats.kernel_trace, map_rounding)
    gap = certified_gap(stats, map_rounding)
    lost, theorem = log_determinant_bound(gap, noise_variance, n), "E4 (concave ELBO)"
    if losses is not None and losses.log_determinant < lost:
        lost, theorem = losses.log_determinant, "E3 (ELBO row by row)"
    lower = log_evidence_lower_bound(stats, lost, noise_variance)
    upper = log_evidence_upper_bound(stats, gap, noise_variance)
    # the quadratic form, the log determinant and the gap each err by rounding relative to their own size
    size = abs(lower) + abs(upper) + (stats.yty + stats.kernel_trace) / noise_variance
    rounding = accumulation_slack(n, size + log_weights_size(stats, signal_variance))
    return Certificate(
        kl=Interval(0.0, sharpened_trace_bound(gap, noise_variance)),
        reverse_kl=Interval(0.0, reverse_bound(gap, noise_variance, n, losses)),
        log_evidence=Interval(lower - rounding, upper + rounding) if math.isfinite(rounding) else None,
        n_rows=n,
        theorem=f"{OWN}, {REVERSE}, {theorem}, E2 (upper bound)",
        evidence={
            "trace_gap": gap - slack,
            "trace_gap_slack": slack,
            "log_evidence_slack": rounding,
            "lost_log_determinant": lost,
            "paper_bound": 0.5 * gap / noise_variance,
        },
        assumptions=(),
    )
