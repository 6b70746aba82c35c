"""Certificates for maps dominated by the kernel (Mercer, Nystrom): deterministic, from the statistics alone.
[theory 3.3, 7.6]"""

from __future__ import annotations

import math

from certgp.gp import Statistics, elbo, log_evidence_upper_bound
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.rounding import accumulation_slack, certified_gap, gap_slack
from certgp.guarantees.scalars import log_excess


def sharpened_trace_bound(gap: float, noise_variance: float) -> float:
    r"""KL(exact || model) <= 1/2 (t - ln(1 + t)), t = Tr(K - Phi Phi') / s2, where 0 <= Phi Phi' <= K.

    With e_i >= 0 the eigenvalues of S2^-1/2 (K - Phi Phi') S2^-1/2: KL = 1/2 sum (e_i - ln(1 + e_i)) exactly; sum e_i
    <= t because S2 >= s2 I, prod (1 + e_i) >= 1 + sum e_i, and T - ln(1 + T) grows with T. Always below the paper's t
    / 2.
    """
    return 0.5 * float(log_excess(gap / noise_variance)) * (1.0 + 1e-14)  # outwards: the function itself rounds


def certify_dominated(
    unit_stats: Statistics, signal_variance: float, noise_variance: float, map_rounding: float = 0.0
) -> Certificate:
    """Bound the KL divergence and bracket the exact log evidence of the rows behind the statistics.

    ``map_rounding`` is what the feature map says of its own arithmetic (``FeatureMap.rounding``).
    """
    stats, n = unit_stats.scaled(signal_variance), unit_stats.n
    slack = gap_slack(n, signal_variance, map_rounding)
    gap = certified_gap(stats, signal_variance, map_rounding)
    lower = elbo(stats, gap, noise_variance)
    upper = log_evidence_upper_bound(stats, gap, noise_variance)
    # the quadratic form, the log determinant and the gap each err by rounding relative to their own size
    rounding = accumulation_slack(n, abs(lower) + abs(upper) + (stats.yty + n * signal_variance) / noise_variance)
    return Certificate(
        kl=Interval(0.0, sharpened_trace_bound(gap, noise_variance)),
        log_evidence=Interval(lower - rounding, upper + rounding) if math.isfinite(rounding) else None,
        n_rows=n,
        theorem="K2 (sharpened trace bound), E1 (ELBO), E2 (upper bound)",
        evidence={
            "trace_gap": gap - slack,
            "trace_gap_slack": slack,
            "log_evidence_slack": rounding,
            "paper_bound": 0.5 * gap / noise_variance,
        },
        assumptions=(),
    )
