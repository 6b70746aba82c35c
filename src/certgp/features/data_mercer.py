"""Mercer features fitted to the inputs at hand.  [theory 2, a to c]

K - Phi Phi' >= 0 holds for *any* subset of the expansion and *any* input scale, so both may be tuned on the data; the
trace gap Tr(K - Phi Phi') = sum_i (1 - |phi(x_i)|^2) is what they lower.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from certgp.data.spread import bulk_moments
from certgp.features.base import FeatureMap
from certgp.features.index_sets import optimal_indices
from certgp.features.mercer import MercerMap
from certgp.kernels import Kernel

SCALE_FACTORS = (1.0, 0.71, 1.41, 0.5, 2.0, 0.35, 2.83)  # of the inputs' standard deviation; the first wins ties
_FINER_FACTORS = (1.0, 0.84, 1.19)
_TUNING_RANK = 300
_TUNING_ROWS = 500
_POOL_FACTOR = 2


@torch.no_grad()
def mean_gap(features: FeatureMap, inputs: Tensor, trim: float = 0.0) -> float:
    """Mean over the rows of 1 - |phi(x)|^2: the prior variance lost, relative to the signal variance.

    ``trim`` leaves out this share of the rows, those that lost most.
    """
    lost = torch.sort(1.0 - features(inputs).square().sum(1)).values
    return float(lost[: max(1, len(lost) - math.ceil(trim * len(lost)))].mean())


@torch.no_grad()
def tune_input_scale(kernel: Kernel, inputs: Tensor, rank: int, trim: float = 0.0) -> Tensor:
    """Input scales (d,) that lower the trace gap of ``rank`` eigenfunctions on these inputs (n, d), but for a share
    ``trim`` of far-out rows.

    One common factor of the standard deviations, on a grid of seven and then on a finer one. Why not one per dimension:
    docs/decisions/0020.
    """
    centre, spread = bulk_moments(inputs)
    spread, size = torch.where(spread > 0, spread, 1.0), min(rank, _TUNING_RANK)
    some = inputs[:: max(1, inputs.shape[0] // _TUNING_ROWS)]

    def gap(factor: float) -> float:
        return mean_gap(MercerMap(kernel, factor * spread, size, centre=centre), some, trim)

    coarse = min(SCALE_FACTORS, key=gap)
    return min((coarse * finer for finer in _FINER_FACTORS), key=gap) * spread


@torch.no_grad()
def pick_by_column_norm(features: MercerMap, inputs: Tensor, rank: int) -> None:
    """Keep the ``rank`` features of largest norm on these inputs, largest first, out of twice as many.

    Tr(Phi Phi') = sum of squared column norms, so this choice is the best of the pool for the trace gap.
    """
    candidates = optimal_indices(features.expansion.ratio.numpy(), _POOL_FACTOR * rank)
    features.set_indices(candidates)
    norms = features(inputs).square().sum(0)
    best = torch.argsort(norms, descending=True, stable=True)[:rank]
    features.set_indices(candidates[best.numpy()])


def data_mercer_map(kernel: Kernel, inputs: Tensor, rank: int, input_scale: Tensor | None = None) -> MercerMap:
    """Mercer features centred, scaled and chosen for these inputs (n, d); ``input_scale`` may be tuned beforehand."""
    scale = tune_input_scale(kernel, inputs, rank) if input_scale is None else input_scale
    features = MercerMap(kernel, scale, rank, centre=bulk_moments(inputs)[0])
    pick_by_column_norm(features, inputs, rank)
    return features


def principal_directions_of(gram: Tensor, rank: int) -> Tensor:
    """V (m, r), the leading eigenvectors of Phi'Phi (m, m): Phi V V' Phi' <= Phi Phi' <= K is still dominated.

    ``Statistics.mixed(V)`` are the statistics of these r features, the best r that the pool of m can give these rows.
    """
    vectors: Tensor = torch.linalg.eigh(gram).eigenvectors
    return vectors.flip(1)[:, :rank].contiguous()
