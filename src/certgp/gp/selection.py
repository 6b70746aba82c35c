"""Choosing features by how much evidence they bring, from the statistics of a larger pool."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.gp.statistics import Statistics


def greedy_selection(
    pool: Statistics, rank: int, signal_variance: float, noise_variance: float, objective: str
) -> NDArray[np.int64]:
    r"""Indices of ``rank`` features of the pool: each raises the objective most, given those before it.

    Gain of feature k given the chosen set S, in unit-variance statistics with g = s2 / sf2:

        1/2 [ c_k^2 / (s_k s2) - ln(s_k / g)  {+ A_kk / g for the ELBO} ]

    where s_k and c_k are the Schur complement of (A + g I)_SS and the residual of b: pivoted Cholesky, O(m r^2). Of
    several outputs (``at_common_noise``) the sum of c_k^2 over the columns of b.
    The set depends on y, so a-priori rank theorems do not apply to it; Phi Phi' <= K does, for every subset.
    """
    m, g = pool.rank, noise_variance / signal_variance
    diagonal = pool.A.diagonal()
    schur, residual = diagonal + g, pool.b.reshape(m, -1)
    trace_gain = diagonal / g if objective == "elbo" else torch.zeros_like(diagonal)
    factor = torch.zeros((rank, m), dtype=torch.float64)
    taken = torch.zeros(m, dtype=torch.bool)
    chosen: list[int] = []
    for step in range(rank):
        gain = residual.square().sum(1) / (schur * noise_variance) - torch.log(schur / g) + trace_gain
        k = int(gain.masked_fill(taken, -math.inf).argmax())
        row = pool.A[k] - factor[:step, k] @ factor[:step]
        row[k] += g
        row /= torch.sqrt(schur[k])
        factor[step] = row
        residual = residual - torch.outer(row, residual[k] / torch.sqrt(schur[k]))
        schur = (schur - row.square()).clamp_min(1e-9 * g)
        taken[k] = True
        chosen.append(k)
    return np.array(chosen, dtype=np.int64)
