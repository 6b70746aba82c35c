"""The evidence of low rank plus local, as a function of metric, kernel and variances."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.features import nystrom_features
from certgp.gp import EvidenceGradient, Statistics, evidence_gradient, feature_cotangent
from certgp.gp.conditionals import (
    Block,
    Indices,
    coordinates,
    correlation_blocks,
    gather,
    is_radial,
    radial_residual_gradient,
    residual_gradient,
    sparse_weights,
)
from certgp.gp.full_scale import WhitenedRows, whiten
from certgp.gp.neighbours import Neighbours, search_coordinates
from certgp.kernels import Kernel
from certgp.training.full_batch.objective import Objective
from certgp.training.local.metric import Metric
from certgp.training.local.objective import MetricVector, TargetRows, compact
from certgp.training.parameters import Array

_BLOCK_ROWS = 256  # of a kernel without compiled loops
JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class LowRankPart:
    """Rows (r, D) whose images are the inducing points, and how many rows the sample of an objective stands for."""

    centres: Tensor
    n_rows: int

    def features(self, metric: Metric, points: Tensor) -> Tensor:
        """phi (n, r) of mapped rows (n, d) at unit signal variance; carries gradients."""
        return nystrom_features(metric.kernel, points, metric(self.centres), JITTER)


@torch.no_grad()
def pick_earlier(metric: Metric, rows: Chunk, targets: Indices, count: int) -> TargetRows:
    """These rows with the ``count`` nearest rows before them, in the metric as it is now."""
    where = search_coordinates(metric.kernel, metric(rows.X))
    near = Neighbours(where).nearest(where[targets], min(count, len(where) - 1), before=targets)
    return compact(rows, targets, near)


class FullScaleObjective(Objective):
    r"""-log Q(y) / N of low rank plus local, each row given neighbours before it, which stay as they are.

    The sums over rows (A, b, c, sum log d of ``WhitenedStatistics``) are those of B rows, times N / B.
    """

    def __init__(self, metric: Metric, data: TargetRows, low_rank: LowRankPart) -> None:
        self.metric, self._data, self._low_rank = metric, data, low_rank
        self._vector = MetricVector(metric)

    def start(self) -> Array:
        return self._vector.start()

    def bounds(self) -> list[tuple[float, float]]:
        return self._vector.bounds()

    def move_to(self, values: Array) -> None:
        self._vector.move_to(values)

    @torch.no_grad()
    def profiled(self, ratio: float) -> tuple[float, float]:
        """The objective at this noise ratio and the best signal variance, (c - b'(A + I)^-1 b) / N; and the latter."""
        points = self.metric(self._data.rows.X)
        white = self._whiten(points, self._low_rank.features(self.metric, points), ratio)
        stats, n = self._statistics(white), self._low_rank.n_rows
        at_one = evidence_gradient(stats, 1.0, 1.0, "marginal")
        # the value is 1/2 [misfit + log|A + I| + N log 2 pi] there, and its derivative in log sf2 is (N - misfit) / 2
        misfit = n - 2.0 * (at_one.by_log_signal + at_one.by_log_noise)
        signal = max(misfit / n, float(np.finfo(np.float64).tiny))
        best = at_one.value - 0.5 * misfit + 0.5 * n * (1.0 + math.log(signal))
        return best / n + 0.5 * float(np.log(white.variances).mean()), signal

    @torch.enable_grad()
    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        metric, n = self.metric, self._low_rank.n_rows
        points = metric(self._data.rows.X)
        phi = self._low_rank.features(metric, points)
        white = self._whiten(points.detach(), phi.detach(), metric.ratio)
        found = evidence_gradient(self._statistics(white), metric.signal, metric.signal, "marginal")
        outputs, cotangents, by_log_ratio = self._pull_back(points, phi, white, found)
        by = self._vector.pull_back(outputs, cotangents)
        by_log_signal = (found.by_log_signal + found.by_log_noise) / n
        value = found.value / n + 0.5 * float(np.log(white.variances).mean())
        return value, self._vector.flatten(by, by_log_signal, by_log_ratio)

    def _whiten(self, points: Tensor, phi: Tensor, ratio: float) -> WhitenedRows:
        data = self._data
        kernel, noise = self.metric.kernel.detached(), data.noise(ratio)
        return whiten(kernel, points, phi, data.rows.y, data.targets, data.neighbours, noise)

    def _statistics(self, white: WhitenedRows) -> Statistics:
        """Those of N rows like these."""
        n, some = self._low_rank.n_rows, Statistics.of(white.features, white.targets)
        factor = n / some.n
        return replace(some, A=factor * some.A, b=factor * some.b, yty=factor * some.yty, n=n)

    def _pull_back(
        self, points: Tensor, phi: Tensor, white: WhitenedRows, found: EvidenceGradient
    ) -> tuple[list[Tensor], list[Tensor], float]:
        r"""Coordinates or covariances and features, the objective's gradient in them and in the log of the ratio.

        A row's whitened z = Y'u / sqrt(d), Y = [Phi, y] at u's places, u = (-v, 1), with gradient g has
        dL = by_d dd - a'dC u / sqrt(d) + g'dY'u / sqrt(d), a = (C_N^-1 Y_N g, 0), by_d = (1 - g'z) / 2d. The
        covariance C contains -Phi Phi', so features also gain -2 G Phi, G = by_d u u' - (a u' + u a') / 2 sqrt(d).
        """
        data, n = self._data, len(points)
        psi, t = white.features, white.targets
        factor = 1.0 / len(t)
        by_psi = factor * feature_cotangent(psi, t, found.by_gram, found.by_projection)
        by_t = factor * (psi @ found.by_projection + t / self.metric.signal)
        root = torch.from_numpy(np.sqrt(white.variances))
        by_d = (0.5 * factor - 0.5 * ((by_psi * psi).sum(1) + by_t * t)) / root.square()
        F, y, own = phi.detach(), data.rows.y, torch.from_numpy(data.targets)
        index = torch.from_numpy(np.where(data.neighbours >= 0, data.neighbours, 0))
        sides = _neighbour_forms(F, index, by_psi) + y[index] * by_t[:, None]
        shape, by_shape, solved, by_ratio = self._differentiate(points, F, sides.numpy(), by_d, -1.0 / root)
        a = sparse_weights(data.neighbours, solved, n)
        Q = (
            by_psi / root[:, None]
            - 2.0 * (by_d * root)[:, None] * psi
            + torch.from_numpy(a @ F.numpy()) / root[:, None]
        )
        V = sparse_weights(data.neighbours, white.weights, n)
        by_phi = torch.from_numpy(a.T @ psi.numpy() - V.T @ Q.numpy()).index_add_(0, own, Q)
        return [*shape, phi], [*by_shape, by_phi], by_ratio

    def _differentiate(
        self, points: Tensor, phi: Tensor, sides: Array, by_d: Tensor, by_side: Tensor
    ) -> tuple[list[Tensor], list[Tensor], Array, float]:
        """What the covariances depend on, the gradient in it, C_N^-1 s (B, m), and the gradient in the log of the
        ratio.
        """
        kernel, data = self.metric.kernel, self._data
        noise = data.noise(self.metric.ratio)
        if is_radial(kernel):
            Z = coordinates(kernel, points)
            by_Z, solved, by_ratio = radial_residual_gradient(
                kernel, Z.detach(), phi, data.targets, data.neighbours, noise, sides, by_d.numpy(), by_side.numpy()
            )
            return [Z], [by_Z], solved, by_ratio
        blocks, by_blocks, solved, by_ratio = [], [], np.zeros(sides.shape), 0.0
        for part in (slice(i, i + _BLOCK_ROWS) for i in range(0, len(sides), _BLOCK_ROWS)):
            K, left, block = self._blocks(kernel, points, phi, noise, part)
            by_K, solved[part] = residual_gradient(
                kernel, left, block.counts, block.noise, sides[part], by_d[part].numpy(), by_side[part].numpy()
            )
            blocks.append(K)
            by_blocks.append(by_K)
            by_ratio += float(np.einsum("bii,bi->", by_K.numpy(), block.noise))
        return blocks, by_blocks, solved, by_ratio

    def _blocks(
        self, kernel: Kernel, points: Tensor, phi: Tensor, noise: Array, part: slice
    ) -> tuple[Tensor, Tensor, Block]:
        """Correlations of some rows and their neighbours, what features leave of them, and the rows themselves."""
        data, own = self._data, torch.from_numpy(self._data.targets[part])
        own_noise = noise[data.targets[part]]
        block = gather(points[own], points, data.rows.y, data.neighbours[part], noise=noise, own_noise=own_noise)
        K = correlation_blocks(kernel, block.points)
        beside = gather(phi[own], phi, data.rows.y, data.neighbours[part]).points
        return K, K.detach() - beside @ beside.mT, block


def _neighbour_forms(phi: Tensor, index: Tensor, by_psi: Tensor) -> Tensor:
    """phi(x_j)'g_b for each neighbour j (B, m) of each row b, some rows at a time."""
    parts = [
        torch.einsum("bmr,br->bm", phi[index[start : start + _BLOCK_ROWS]], by_psi[start : start + _BLOCK_ROWS])
        for start in range(0, len(index), _BLOCK_ROWS)
    ]
    return torch.cat(parts)
