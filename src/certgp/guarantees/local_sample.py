r"""KL(exact || local) from above by some of the training rows, at a stated confidence: V3+.

    KL <= 1/2 sum log(d_i / d_i') + sum_i g_i,   g_i = 1/2 log(d_i' / d_i*) in [0, R_i],   R_i = 1/2 log(d_i' / s2)

The first sum is over all rows. The second is bounded through n rows, drawn independently with probabilities R_i / R,
R = sum R_i: R g_i / R_i lies in [0, R] and has the second sum as its mean. For sizes at which products with the exact
covariance (V9, far narrower) are out of reach.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.guarantees.certificate import Interval
from certgp.guarantees.local_factor import LocalFactor, divergence_below
from certgp.guarantees.local_rows import Covariance, bound_rows
from certgp.guarantees.local_sets import nearest_before
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]


@torch.no_grad()
def bracket_by_sample(
    local: LocalFactor,
    larger: LocalFactor,
    covariance: Covariance,
    inputs: Tensor,
    points: Array,
    near: int,
    count: int,
    delta: float,
    rng: np.random.Generator,
) -> Interval:
    """V2 and V3+: KL(exact || local) from below, certain, and from above with probability 1 - delta.

    ``larger`` has sets that contain the local model's; ``near`` rows by the coordinates ``points`` (N, d) bound each of
    the ``count`` >= 2 sampled rows (V3).
    """
    s2 = local.noise_variance
    ranges = 0.5 * np.log(larger.highest / s2)  # d_i* >= s2
    total = float(ranges.sum()) * (1.0 + 1e-9)
    known = 0.5 * (local.log_determinant().upper - float(np.log(larger.highest).sum()))
    rows = rng.choice(len(ranges), count, p=ranges / ranges.sum())
    bounds = bound_rows(
        covariance, inputs[torch.from_numpy(rows)], inputs, lambda b: nearest_before(points, int(rows[b]), near), s2,
        before=rows,
    )  # fmt: skip
    gaps = 0.5 * np.log(larger.highest[rows] / (bounds.lower + s2))
    values = total * np.clip(gaps / ranges[rows], 0.0, 1.0)
    slack = 4.0 * local.n_rows * UNIT_ROUNDOFF * float(np.abs(np.log(larger.highest)).sum())
    lower = divergence_below(local, larger)
    return Interval(lower, max(lower, known + slack + mean_above(values, total, delta)))


def mean_above(values: Array, largest: float, delta: float) -> float:
    """A bound on the mean of independent values in [0, largest], but with probability delta: the empirical Bernstein
    inequality.  [Maurer and Pontil 2009, theorem 4]
    """
    n, x = len(values), math.log(2.0 / delta)
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * x / n)
    return float(values.mean()) + spread + 7.0 * largest * x / (3.0 * (n - 1))
