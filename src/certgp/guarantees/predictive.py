"""What a model loses at new rows on average over targets: the chain rule of the KL divergence.  [paper, eq. 56, 57]"""

from __future__ import annotations

import torch
from torch import Tensor

from certgp.gp import Statistics
from certgp.guarantees.certificate import ExpectedPredictiveKL, Interval
from certgp.guarantees.reference import Reference, joint_features, kl_from_gram
from certgp.guarantees.rounding import certified_gap, divergence_rounding
from certgp.guarantees.row_losses import RowLosses

_CHUNK = 4_096


@torch.no_grad()
def expected_predictive_kl(reference: Reference, X_new: Tensor) -> ExpectedPredictiveKL:
    r"""E_{y ~ P} KL(P(y* | y) || Q(y* | y)) = KL_total - KL_train, each known as in ``certify_through``.

    KL_total speaks of training and new rows together; their statistics are a sum. The paper keeps KL_total alone, which
    is larger by KL_train. New rows have weight one.  [theory 7.1]
    """
    problem, m = reference.problem, reference.features.rank
    sf2, s2 = problem.signal_variance, problem.noise_variance
    total, losses = reference.joint, reference.losses
    for start in range(0, X_new.shape[0], _CHUNK):
        rows = X_new[start : start + _CHUNK]
        features = joint_features(problem.model, reference.features, rows)
        total = total + Statistics.of(features, torch.zeros(len(rows), dtype=torch.float64))
        losses = losses + RowLosses.of(features[:, :m], sf2, s2, reference.map_rounding)
    gap = certified_gap(total.leading(m).scaled(sf2), reference.map_rounding)
    centre = kl_from_gram(total.scaled(sf2).A, m, s2) - reference.kl_to_model()
    rounding = 2.0 * divergence_rounding(total.n, total.rank, sf2 * total.kernel_trace, s2)
    below = 0.5 * losses.log_determinant + 0.5 * reference.trace_gap / s2 + rounding
    above = 0.5 * gap / s2 + 0.5 * reference.losses.log_determinant + rounding
    return ExpectedPredictiveKL(Interval(max(0.0, centre - below), max(0.0, centre + above)), X_new.shape[0])
