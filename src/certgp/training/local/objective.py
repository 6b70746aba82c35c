"""The likelihood of some rows given their neighbours, as a function of metric, kernel and variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.gp.calibration import gaussian_log_density
from certgp.gp.conditionals import (
    Indices,
    Loss,
    condition,
    coordinates,
    correlation_blocks,
    gather,
    general_loss,
    is_radial,
    radial_loss,
)
from certgp.gp.neighbours import Neighbours, search_coordinates
from certgp.kernels import Kernel
from certgp.training.full_batch.objective import Objective
from certgp.training.local.metric import Metric
from certgp.training.parameters import Array, ParameterVector

_BLOCK_ROWS = 256  # of a kernel without compiled loops
_VARIANCES = ("log_signal", "log_ratio")


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows whose likelihood counts, their neighbours, and nothing else: numbers refer to ``rows``."""

    rows: Chunk  # all rows that occur
    targets: Indices  # (B,)
    neighbours: Indices  # (B, m)

    def noise(self, ratio: float) -> Array:
        """Noise of all rows in units of the signal variance: the ratio over the weight."""
        return np.asarray(self.rows.noise(ratio)) * np.ones(len(self.rows.y))

    def part(self, some: slice) -> TargetRows:
        """Some of the targets, with the rows that they need."""
        return _compact(self.rows, self.targets[some], self.neighbours[some])


@torch.no_grad()
def pick_targets(metric: Metric, rows: Chunk, targets: Indices, count: int) -> TargetRows:
    """These rows with the ``count`` nearest others, in the metric as it is now."""
    kernel, points = metric.kernel, metric(rows.X)
    where = search_coordinates(kernel, points)
    near = Neighbours(where).nearest(where[targets], min(count, len(where) - 1), own=targets)
    return _compact(rows, targets, near)


def _compact(rows: Chunk, targets: Indices, near: Indices) -> TargetRows:
    """Targets and neighbours (B, m) among rows, of which only those that occur are kept."""
    used, place = np.unique(np.concatenate([near.ravel(), targets]), return_inverse=True)
    missing = int(used[0] == -1)
    used = used[missing:]
    place = place - missing
    some = torch.from_numpy(used)
    return TargetRows(rows.pick(some), place[near.size :], place[: near.size].reshape(near.shape))


@torch.no_grad()
def row_losses(metric: Metric, data: TargetRows) -> Array:
    """-log N(y_i | mean_i, d_i) (B,) of each row given its neighbours."""
    points, own = metric(data.rows.X), torch.from_numpy(data.targets)
    noise = data.noise(metric.ratio)
    found = condition(metric.kernel, points[own], points, data.rows.y, data.neighbours, noise)
    variance = metric.signal * (found.variance + noise[data.targets])
    return -gaussian_log_density(data.rows.y[own].numpy(), found.mean, variance)


class LocalObjective(Objective):
    """Mean over rows of -log N(y_i | mean_i, d_i) given their neighbours, which stay as they are."""

    def __init__(self, metric: Metric, data: TargetRows) -> None:
        self.metric, self._data = metric, data
        self.parameters = ParameterVector(metric)

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        boxes, free = self.metric.parameter_bounds(), (-np.inf, np.inf)
        return [boxes.get(name, free) for name, p in self.parameters.named for _ in range(p.numel())]

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    @torch.enable_grad()
    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        kernel, points = self.metric.kernel, self.metric(self._data.rows.X)
        if is_radial(kernel):
            parts = [self._differentiate_radial(kernel, points)]
        else:
            starts = range(0, len(self._data.targets), _BLOCK_ROWS)
            parts = [self._differentiate_block(kernel, points, slice(i, i + _BLOCK_ROWS)) for i in starts]
        gradient = np.sum([self._flatten(loss, by_shape) for loss, by_shape in parts], axis=0)
        n = len(self._data.targets)
        return sum(loss.value for loss, _ in parts) / n, gradient / n

    def _differentiate_radial(self, kernel: Kernel, points: Tensor) -> tuple[Loss, dict[str, Tensor]]:
        data, metric = self._data, self.metric
        Z = coordinates(kernel, points)
        fixed, y, weight = Z.detach().contiguous(), data.rows.y, data.rows.weight
        loss, by_Z = radial_loss(kernel, fixed, y, data.targets, data.neighbours, metric.signal, metric.ratio, weight)
        return loss, self._pull_back(Z, by_Z)

    def _differentiate_block(self, kernel: Kernel, points: Tensor, part: slice) -> tuple[Loss, dict[str, Tensor]]:
        data, own = self._data, torch.from_numpy(self._data.targets[part])
        noise, y = data.noise(1.0), data.rows.y
        own_noise = noise[data.targets[part]]
        block = gather(points[own], points, y, data.neighbours[part], y[own], noise, own_noise)
        K = correlation_blocks(kernel, block.points)
        loss, by_K = general_loss(K, block, self.metric.signal, self.metric.ratio, kernel)
        return loss, self._pull_back(K, by_K)

    def _pull_back(self, output: Tensor, cotangent: Tensor) -> dict[str, Tensor]:
        """Gradients of the parameters that ``output`` depends on, by name."""
        shape = {name: p for name, p in self.parameters.named if name not in _VARIANCES}
        if not shape:
            return {}
        found = torch.autograd.grad(output, list(shape.values()), cotangent, retain_graph=True, allow_unused=True)
        return {name: by for name, by in zip(shape, found, strict=True) if by is not None}

    def _flatten(self, loss: Loss, by_shape: dict[str, Tensor]) -> Array:
        by_variance = {"log_signal": loss.by_log_signal, "log_ratio": loss.by_log_ratio}
        by = by_shape | {name: torch.tensor(value, dtype=torch.float64) for name, value in by_variance.items()}
        return ParameterVector.flatten([by.get(name, torch.zeros_like(p)) for name, p in self.parameters.named])
