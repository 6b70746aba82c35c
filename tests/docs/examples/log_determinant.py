"""A theorem: how much of the exact log determinant a map dominated by the kernel misses."""

import math

from certgp.gp import Statistics
from certgp.guarantees.rounding import certified_gap


def log_determinant_bound(
    unit_stats: Statistics, signal_variance: float, noise_variance: float, map_rounding: float = 0.0
) -> float:
    r"""0 <= ln|K + s2 I| - ln|Phi Phi' + s2 I| <= N ln(1 + t / N), t = Tr(K - Phi Phi') / s2, Phi Phi' <= K.  [L1]

    The difference is sum_i ln(1 + e_i) with e_i >= 0 the eigenvalues of S2^-1/2 (K - Phi Phi') S2^-1/2. Their sum is at
    most t because S2 >= s2 I, and the logarithm is concave, so it is largest where all e_i are equal.
    """
    n = unit_stats.n
    gap = certified_gap(unit_stats.scaled(signal_variance), map_rounding)
    return n * math.log1p(gap / (n * noise_variance)) * (1.0 + 1e-14)  # outwards: the function itself rounds
