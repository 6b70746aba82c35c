"""The likelihood of some rows given their neighbours, as a function of metric, kernel and variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.gp.conditionals import (
    Indices,
    coordinates,
    correlation_blocks,
    gather,
    general_loss,
    is_radial,
    radial_loss,
)
from certgp.gp.neighbours import Neighbours, search_coordinates
from certgp.training.full_batch.objective import Objective
from certgp.training.local.metric import Metric
from certgp.training.parameters import Array, ParameterVector

_BLOCK_ROWS = 256  # of a kernel without compiled loops, and of scattered gradients


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows whose likelihood counts, their neighbours, and nothing else: numbers refer to ``rows``."""

    rows: Chunk  # all rows that occur
    targets: Indices  # (B,)
    neighbours: Indices  # (B, m)


@torch.no_grad()
def pick_targets(metric: Metric, rows: Chunk, targets: Indices, count: int) -> TargetRows:
    """These rows with the ``count`` nearest others, in the metric as it is now."""
    kernel, points = metric.kernel, metric(rows.X)
    where = search_coordinates(kernel, points)
    near = Neighbours(where).nearest(where[targets], min(count, len(where) - 1), own=targets)
    used, place = np.unique(np.concatenate([near.ravel(), targets]), return_inverse=True)
    missing = int(used[0] == -1)
    used = used[missing:]
    place = place - missing
    some = torch.from_numpy(used)
    return TargetRows(Chunk(rows.X[some], rows.y[some]), place[near.size :], place[: near.size].reshape(near.shape))


class LocalObjective(Objective):
    """Mean over rows of -log N(y_i | mean_i, d_i) given their neighbours, which stay as they are."""

    def __init__(self, metric: Metric, data: TargetRows, penalty: float = 0.0) -> None:
        self.metric, self._data = metric, data
        self.parameters = ParameterVector(metric)

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        boxes, free = self.metric.parameter_bounds(), (-np.inf, np.inf)
        return [boxes.get(name, free) for name, p in self.parameters.named for _ in range(p.numel())]

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        for parameter in self.parameters.tensors:
            parameter.grad = None
        value = self._accumulate()
        n = len(self._data.targets)
        return value / n, self._gradient() / n

    def _gradient(self) -> Array:
        tensors = self.parameters.tensors
        return ParameterVector.flatten([torch.zeros_like(p) if p.grad is None else p.grad for p in tensors])

    @torch.enable_grad()
    def _accumulate(self) -> float:
        """The sum over rows; gradients are left in the parameters."""
        metric, data = self.metric, self._data
        kernel = metric.kernel
        points = metric(data.rows.X)
        if is_radial(kernel):
            Z = coordinates(kernel, points)
            loss, by_Z = radial_loss(
                kernel, Z.detach().contiguous(), data.rows.y, data.targets, data.neighbours, metric.signal, metric.ratio
            )
            Z.backward(by_Z)
            self._add(loss.by_log_signal, loss.by_log_ratio)
            return loss.value
        total = 0.0
        for start in range(0, len(data.targets), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            total += self._accumulate_block(points, data.targets[part], data.neighbours[part])
        return total

    def _accumulate_block(self, points: Tensor, targets: Indices, neighbours: Indices) -> float:
        data, metric = self._data, self.metric
        kernel = metric.kernel
        own = torch.from_numpy(targets)
        block = gather(points[own], points, data.rows.y, neighbours, data.rows.y[own])
        K = correlation_blocks(kernel, block.points)
        loss, by_K = general_loss(K, block, metric.signal, metric.ratio, kernel)
        K.backward(by_K, retain_graph=points.requires_grad)
        self._add(loss.by_log_signal, loss.by_log_ratio)
        return loss.value

    def _add(self, by_signal: float, by_ratio: float) -> None:
        for parameter, value in ((self.metric.log_signal, by_signal), (self.metric.log_ratio, by_ratio)):
            gradient = torch.tensor(value, dtype=torch.float64)
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
