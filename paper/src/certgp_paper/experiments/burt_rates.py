r"""Ranks that two theorems ask for against the number of rows N, at one divergence: KL <= 1 nat, so epsilon = 1 / N.

[paper, "Related work": its bounds "are quantitatively similar to" those of Burt et al. "for the Gaussian kernel, and
have a better dependence on N" for the Matern kernel] With Lambda(r) the eigenvalue tail of the kernel's operator:

    Theorem 3           N (Lambda(r) + sqrt(Lambda(r) / (N delta))) / (2 s2) <= KL, and sharpened (``mercer_rank``)
    Burt et al. (2019)  (r + 1) N Lambda(r) / (delta s2) <= KL for r inducing points drawn by a k-DPP

The second one follows in three steps, with Q the Nystrom matrix of r training inputs and t = Tr(K - Q) / s2. For y of
the prior the variational posterior has E_y KL = E_y [log p(y) - ELBO] = KL(N(0, K + s2 I), N(0, Q + s2 I)) + t / 2 <= t
(theorem K1). A k-DPP of r inputs has E Tr(K - Q) <= (r + 1) sum_{i > r} of the eigenvalues of K [Belabbas, Wolfe 2009],
whose mean over inputs is at most N Lambda(r) [Shawe-Taylor et al. 2005]. Then Markov. The two theorems bound different
divergences: that of the prior on the data, and that of the variational posterior. The factor r + 1 costs an order in N
for Matern kernels, N^(1 / (2 nu - 1)) instead of N^(1 / (2 nu)) in one dimension, and for Matern 1/2 everything.

Gaussian kernels have normal inputs, Matern kernels uniform ones; scales and noise are those of figure 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from certgp.guarantees import mercer_tail, ritz_eigenvalues, sharpened_trace_bound
from certgp.guarantees.mercer_rank import trace_quantile
from certgp.kernels import kernel_from_name
from certgp_paper.experiments.low_rank_kl import first_within
from certgp_paper.experiments.rates_setting import GAUSSIAN, INPUT_SCALE, LENGTH_SCALE, NOISE

Array = NDArray[np.float64]
DIVERGENCE = 1.0  # nats
DELTA = 0.05
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
CURVES = ((GAUSSIAN, 1), (GAUSSIAN, 2), ("matern32", 1), ("matern52", 1))
THEOREMS = ("theorem3", "theorem3_sharp", "burt")
_LARGEST_RANK = 1_000
_ROUNDING = 1e-12  # of one minus a sum of eigenvalues


def promised_ranks(kernel: str, dimension: int) -> dict[str, list[int | None]]:
    """By theorem, the smallest rank for each N of ``SIZES``; None where it is above 1,000."""
    tails = _tails(kernel, dimension)
    bounds: dict[str, Callable[[int, Array], Array]] = {
        "theorem3": lambda n, tail: np.array([0.5 * n * trace_quantile(t, n, DELTA, "paper") / NOISE for t in tail]),
        "theorem3_sharp": lambda n, tail: np.array(
            [sharpened_trace_bound(n * trace_quantile(t, n, DELTA, "sharp"), NOISE) for t in tail]
        ),
        "burt": lambda n, tail: np.arange(2, len(tail) + 2) * n * tail / (DELTA * NOISE),
    }
    found: dict[str, list[int | None]] = {}
    for name in THEOREMS:
        places = [first_within(bounds[name](n, tails), DIVERGENCE) for n in SIZES]
        found[name] = [None if place is None else place + 1 for place in places]
    return found


def _tails(kernel: str, dimension: int) -> Array:
    """Lambda(r), or a bound from above, for r = 1, .., 1,000."""
    if kernel == GAUSSIAN:
        spread = [INPUT_SCALE] * dimension
        ranks = range(1, _LARGEST_RANK + 1)
        return np.array([mercer_tail(length_scale=LENGTH_SCALE, input_scale=spread, rank=rank) for rank in ranks])
    values = ritz_eigenvalues(kernel_from_name(kernel)(LENGTH_SCALE), math.sqrt(3.0) * INPUT_SCALE)
    return np.maximum(1.0 - np.cumsum(values[:_LARGEST_RANK]), 0.0) + _ROUNDING
