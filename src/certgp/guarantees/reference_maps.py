"""Maps dominated by the kernel for the rows at hand: what references are made of.

Eigenfunctions of the Gaussian kernel cost little and leave less and less of every row, but their number grows fast with
the dimension. Inducing points chosen greedily from the rows follow the rows wherever they lie, and leave no less than
their jitter. Which of the two is better is a matter of the data, so both are built and compared (docs/decisions/0019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines import Engine
from certgp.features import (
    FeatureMap,
    NystromMap,
    data_mercer_map,
    greedy_inducing_points,
    mean_gap,
    residual_points,
)
from certgp.features.data_mercer import tune_input_scale
from certgp.features.residual import add_points
from certgp.gp import LowRankModel
from certgp.kernels import Kernel

_MERCER_ROWS = 2_000  # to tune and choose eigenfunctions on
_TUNING_RANK = 300
_JITTER = 1e-8
_SMALL_GAP = 1e-7  # of a row: inducing points with their jitter would hardly leave less
_COST_OF_POINTS = 2.0  # reading them takes about twice as long, so they must leave less than half
_RESIDUAL_SHARE = 8  # at most one in so many features is an inducing point on a row that the others leave most of
_MOST_OUTLIERS = 0.1  # of the rows
_POINT_POOL = 8  # rows to choose each of them from
_WORTH_A_POINT = 10.0  # a row must have lost so many times the average


def reference_features(kernel: Kernel, inputs: Tensor, rank: int) -> FeatureMap:
    """A map of this rank dominated by the kernel for these inputs (n, d), all that there are."""
    return ReferenceMaps(kernel, inputs, inputs, rank).of_rank(rank)


def outlier_share(rank: int, n_rows: int) -> float:
    """The share of the rows that inducing points of a reference of this rank can take care of one by one."""
    return min(rank / _RESIDUAL_SHARE / n_rows, _MOST_OUTLIERS)


class ReferenceMaps:
    """Maps dominated by the kernel at any rank, chosen on some inputs of the kernel (n, d) and judged by others (the
    same where they are all there are). ``outliers`` is the share of far-out rows that is not held against them.
    """

    def __init__(self, kernel: Kernel, choose: Tensor, judge: Tensor, tuning_rank: int, outliers: float = 0.0) -> None:
        self._kernel, self._choose, self._judge, self._outliers = kernel, choose, judge, outliers
        if kernel.has_mercer_expansion:
            mixed = torch.from_numpy(np.random.default_rng(0).permutation(len(choose)))
            self._few = choose[mixed[:_MERCER_ROWS]]
            self._scale = tune_input_scale(kernel, self._few, max(tuning_rank, _TUNING_RANK), outliers)

    def of_rank(self, rank: int, reserved: int = 0) -> FeatureMap:
        """Eigenfunctions, or inducing points where they leave much less. Of eigenfunctions ``reserved`` fewer than
        ``rank``: room for inducing points on rows far out, of which eigenfunctions take nothing.
        """
        if not self._kernel.has_mercer_expansion:
            return self._inducing_points(rank)
        mercer = data_mercer_map(self._kernel, self._few, rank - reserved, self._scale)
        left = self.gap(mercer)
        if left <= _SMALL_GAP:
            return mercer
        points = self._inducing_points(rank)
        return points if _COST_OF_POINTS * (self.gap(points) + points.rounding()) < left else mercer

    def gap(self, features: FeatureMap) -> float:
        """What a map leaves of a row on average, at unit signal variance, by the rows that judge."""
        return max(mean_gap(features, self._judge, self._outliers), 0.0)

    def is_largest(self, features: FeatureMap, rank: int) -> bool:
        """Is this, built for ``rank``, the largest map there is? Eigenfunctions never end, points do with the rows."""
        return not self._kernel.has_mercer_expansion and features.rank < rank

    def _inducing_points(self, rank: int) -> NystromMap:
        points = greedy_inducing_points(self._kernel, self._choose, min(rank, len(self._choose)), tolerance=_JITTER)
        return NystromMap(self._kernel, points, jitter=_JITTER)


def reserved_points(rank: int) -> int:
    """How many features of a reference may be inducing points on single rows."""
    return rank // _RESIDUAL_SHARE


@torch.no_grad()
def complete_map(
    features: FeatureMap, model: LowRankModel, source: RowSource, engine: Engine, rank: int
) -> tuple[FeatureMap, float]:
    """The map, built for ``rank``, with inducing points on the rows of the source that it explains least, and a bound
    (but for jitter) on what is left of all rows, Tr(K - Psi Psi') at unit variance, each row times its weight.

    At most ``reserved_points(rank)`` of them; of a map of inducing points the last ones make room.
    """
    points = reserved_points(rank)
    keep = max(_POINT_POOL * points, 1)
    base = features.leading(min(features.rank, rank - points))

    def task(chunk: Chunk) -> _Residuals:
        inputs = model.kernel_inputs(chunk.X.double())
        explained = features(inputs).square()
        weight = chunk.weights()
        # leading points have the leading features
        lost = weight * (1.0 - explained[:, : base.rank].sum(1)).clamp_min(0.0)
        whole = weight * (1.0 - explained.sum(1)).clamp_min(0.0)
        order = torch.argsort(lost, descending=True, stable=True)[:keep]
        least = float(weight.min())
        return _Residuals(float(whole.sum()), float(lost.sum()), lost[order], inputs[order], keep, least)

    left = engine.fold(task, source, features.rank)
    chosen = residual_points(base, left.rows, points, _WORTH_A_POINT * left.total / source.n_rows)
    if len(chosen) == 0:
        return features, left.whole
    gained = left.least_weight * float((1.0 - base(chosen).square().sum(1)).clamp_min(0.0).sum())
    return add_points(features, base.rank, chosen, rank), max(left.total - gained, 0.0)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What a map leaves of some rows, the sum of weight (1 - |psi|^2): as a whole, and its leading features; and the
    rows of which these leave most.
    """

    whole: float
    total: float
    worst: Tensor  # (k,), decreasing
    rows: Tensor  # (k, d) inputs of the kernel
    keep: int
    least_weight: float

    def __add__(self, other: _Residuals) -> _Residuals:
        worst, rows = torch.cat([self.worst, other.worst]), torch.cat([self.rows, other.rows])
        order = torch.argsort(worst, descending=True, stable=True)[: self.keep]
        whole, total = self.whole + other.whole, self.total + other.total
        least = min(self.least_weight, other.least_weight)
        return _Residuals(whole, total, worst[order], rows[order], self.keep, least)
