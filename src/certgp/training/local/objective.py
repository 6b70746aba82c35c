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
from certgp.training.local.prior import SignalPrior
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
        return compact(self.rows, self.targets[some], self.neighbours[some])


@torch.no_grad()
def pick_targets(metric: Metric, rows: Chunk, targets: Indices, count: int) -> TargetRows:
    """These rows with the ``count`` nearest others, in the metric as it is now."""
    kernel, points = metric.kernel, metric(rows.X)
    where = search_coordinates(kernel, points)
    near = Neighbours(where).nearest(where[targets], min(count, len(where) - 1), own=targets)
    return compact(rows, targets, near)


def compact(rows: Chunk, targets: Indices, near: Indices) -> TargetRows:
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


class MetricVector:
    """The parameters of a metric as the vector that an optimiser moves."""

    def __init__(self, metric: Metric) -> None:
        self._metric, self._parameters = metric, ParameterVector(metric)

    def start(self) -> Array:
        """The numbers as they are now."""
        return self._parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        """The box of each number."""
        boxes, free = self._metric.parameter_bounds(), (-np.inf, np.inf)
        return [boxes.get(name, free) for name, p in self._parameters.named for _ in range(p.numel())]

    def move_to(self, values: Array) -> None:
        """Set the numbers."""
        self._parameters.set(values)

    def pull_back(self, outputs: list[Tensor], cotangents: list[Tensor]) -> dict[str, Tensor]:
        """Gradients, by name, of the parameters beside the variances that ``outputs`` depend on."""
        shape = {name: p for name, p in self._parameters.named if name not in _VARIANCES}
        pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[0].requires_grad]
        if not shape or not pairs:
            return {}
        some, given = (list(each) for each in zip(*pairs, strict=True))
        found = torch.autograd.grad(some, list(shape.values()), given, retain_graph=True, allow_unused=True)
        return {name: by for name, by in zip(shape, found, strict=True) if by is not None}

    def flatten(self, by_shape: dict[str, Tensor], by_log_signal: float, by_log_ratio: float) -> Array:
        """A gradient as numbers in the vector's order."""
        by_variance = {"log_signal": by_log_signal, "log_ratio": by_log_ratio}
        by = by_shape | {name: torch.tensor(value, dtype=torch.float64) for name, value in by_variance.items()}
        return ParameterVector.flatten([by.get(name, torch.zeros_like(p)) for name, p in self._parameters.named])


class LocalObjective(Objective):
    """Mean over rows of -log N(y_i | mean_i, d_i) given their neighbours, which stay as they are; a prior on the signal
    variance counts as one more row.
    """

    def __init__(self, metric: Metric, data: TargetRows, prior: SignalPrior | None = None) -> None:
        self.metric, self._data, self._prior = metric, data, prior
        self._vector = MetricVector(metric)

    def start(self) -> Array:
        return self._vector.start()

    def bounds(self) -> list[tuple[float, float]]:
        return self._vector.bounds()

    def move_to(self, values: Array) -> None:
        self._vector.move_to(values)

    @torch.enable_grad()
    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        kernel, points = self.metric.kernel, self.metric(self._data.rows.X)
        if is_radial(kernel):
            parts = [self._differentiate_radial(kernel, points)]
        else:
            starts = range(0, len(self._data.targets), _BLOCK_ROWS)
            parts = [self._differentiate_block(kernel, points, slice(i, i + _BLOCK_ROWS)) for i in starts]
        by = [self._vector.flatten(shape, loss.by_log_signal, loss.by_log_ratio) for loss, shape in parts]
        value, n = sum(loss.value for loss, _ in parts), len(self._data.targets)
        if self._prior is not None:
            loss, by_log_signal = self._prior.loss(float(self.metric.log_signal.detach()))
            value += loss
            by.append(self._vector.flatten({}, by_log_signal, 0.0))
        return value / n, np.sum(by, axis=0) / n

    def _differentiate_radial(self, kernel: Kernel, points: Tensor) -> tuple[Loss, dict[str, Tensor]]:
        data, metric = self._data, self.metric
        Z = coordinates(kernel, points)
        fixed, y, weight = Z.detach().contiguous(), data.rows.y, data.rows.weight
        loss, by_Z = radial_loss(kernel, fixed, y, data.targets, data.neighbours, metric.signal, metric.ratio, weight)
        return loss, self._vector.pull_back([Z], [by_Z])

    def _differentiate_block(self, kernel: Kernel, points: Tensor, part: slice) -> tuple[Loss, dict[str, Tensor]]:
        data, own = self._data, torch.from_numpy(self._data.targets[part])
        noise, y = data.noise(1.0), data.rows.y
        own_noise = noise[data.targets[part]]
        block = gather(points[own], points, y, data.neighbours[part], y[own], noise, own_noise)
        K = correlation_blocks(kernel, block.points)
        loss, by_K = general_loss(K, block, self.metric.signal, self.metric.ratio, kernel)
        return loss, self._vector.pull_back([K], [by_K])
