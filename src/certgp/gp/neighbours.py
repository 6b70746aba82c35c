"""The nearest rows, behind one class: a tree in few dimensions, all distances in many."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from certgp.kernels import Kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
TREE_DIMENSIONS = 3
_SPARE = (
    8  # candidates beyond those asked for: float32 distances choose candidates, float64 distances choose among them
)
_BLOCK_NUMBERS = 2**24  # of distances held at a time
_GROWTH = 1.5  # of the rows that an index over earlier rows covers, from one to the next
_FIRST_STAGE = 512


class Neighbours:
    """Finds the nearest of some points (n, d), in Euclidean distance, ties by their order."""

    def __init__(self, points: Array) -> None:
        self.points = np.ascontiguousarray(points)
        self._tree = cKDTree(self.points) if points.shape[1] <= TREE_DIMENSIONS and len(points) else None

    def nearest(self, at: Array, count: int, own: Indices | None = None, before: Indices | None = None) -> Indices:
        """Row numbers (q, count) of the points nearest to ``at`` (q, d), nearest first; -1 where there are fewer.

        ``own`` (q,) are rows that must not be found (the row itself); ``before`` (q,) keeps only rows before these.
        """
        wanted = min(count, len(self.points))
        if not wanted or not len(at):
            return np.full((len(at), count), -1)
        if self._tree is not None:
            found = self._search_tree(self._tree, at, wanted + (own is not None), own, before)
        else:
            found = self._search_all(at, wanted + (own is not None), own, before)
        result = np.full((len(at), count), -1)
        result[:, : min(count, found.shape[1])] = found[:, :count]
        return result

    def _search_tree(
        self, tree: cKDTree, at: Array, count: int, own: Indices | None, before: Indices | None
    ) -> Indices:
        asked = min(count if before is None else math.ceil(2.0 * _GROWTH * count) + _SPARE, len(self.points))
        _, found = tree.query(at, k=np.arange(1, asked + 1), workers=torch.get_num_threads())
        result = _without(np.asarray(found, dtype=np.int64), own, before)
        if before is not None:  # rows of which too many near ones come later
            short = np.flatnonzero((result >= 0).sum(1) < np.minimum(count, before))
            exact = self._search_all(at[short], count, None, before[short])[:, :asked]
            result[short, : exact.shape[1]] = exact
        return result

    def _search_all(self, at: Array, count: int, own: Indices | None, before: Indices | None) -> Indices:
        centre = self.points.mean(0)
        rows = torch.from_numpy((self.points - centre).astype(np.float32))
        squares = rows.square().sum(1)
        n, candidates = len(rows), min(count + _SPARE, len(rows))
        result = np.empty((len(at), candidates), dtype=np.int64)
        step = max(1, _BLOCK_NUMBERS // n)
        for start in range(0, len(at), step):
            part = slice(start, start + step)
            queries = torch.from_numpy((at[part] - centre).astype(np.float32))
            distances = torch.addmm(squares, queries, rows.mT, alpha=-2.0)
            if before is not None:
                distances.masked_fill_(torch.arange(n) >= torch.from_numpy(before[part])[:, None], math.inf)
            result[part] = torch.topk(distances, candidates, largest=False, sorted=False).indices.numpy()
        return _without(self._sorted(at, result), own, before)

    def _sorted(self, at: Array, found: Indices) -> Indices:
        """Candidates by their distance in float64, ties by their number."""
        found = np.sort(found, 1)
        distances = np.empty(found.shape)
        step = max(1, _BLOCK_NUMBERS // 8 // max(1, found.shape[1] * at.shape[1]))
        for start in range(0, len(at), step):
            part = slice(start, start + step)
            distances[part] = np.square(self.points[found[part]] - at[part, None]).sum(2)
        return np.take_along_axis(found, np.argsort(distances, 1, kind="stable"), 1)


def _without(found: Indices, own: Indices | None, before: Indices | None) -> Indices:
    """Without what is not wanted, the others closed up."""
    drop = np.zeros(found.shape, dtype=bool)
    if own is not None:
        drop |= found == own[:, None]
    if before is not None:
        drop |= found >= before[:, None]
    if not drop.any():
        return found
    order = np.argsort(drop, axis=1, kind="stable")
    closed = np.take_along_axis(found, order, 1)
    closed[np.take_along_axis(drop, order, 1)] = -1
    return closed


def earlier_neighbours(points: Array, count: int, first: int = 0) -> Indices:
    """For each row from ``first`` on, the nearest of the rows before it: (n - first, count), -1 where there are fewer.

    An index covers a prefix of the rows and serves the last third of it, so that at least two thirds of what it finds
    are earlier rows on average; where too few are, the row has fewer neighbours.
    """
    n = len(points)
    result = np.full((n - first, count), -1)
    start = first
    while start < n:
        stop = min(n, max(_FIRST_STAGE, math.ceil(_GROWTH * max(start, 1))))
        rows = np.arange(start, stop)
        result[start - first : stop - first] = Neighbours(points[:stop]).nearest(points[start:stop], count, before=rows)
        start = stop
    return result


def search_coordinates(kernel: Kernel, X: Tensor) -> Array:
    """Coordinates (n, d) in which near rows matter most to each other: columns in units of the kernel's length-scales.

    A column that several parts of a kernel use has the root of the sum of their 1 / l^2, as in a product of Gaussian
    kernels; one that no length-scale measures keeps its units. For a single stationary kernel this is x / l.
    """
    weights = torch.zeros(X.shape[1], dtype=torch.float64)
    used = torch.zeros(X.shape[1], dtype=torch.bool)
    _add_weights(kernel.expanded(X.shape[1]).detached(), weights, used)
    weights = torch.where(used & (weights == 0.0), torch.ones_like(weights), weights.sqrt())
    return np.ascontiguousarray((X.detach().double() * weights)[:, used].numpy())


def _add_weights(kernel: Kernel, weights: Tensor, used: Tensor) -> None:
    columns = list(range(len(weights))) if kernel.columns is None else list(kernel.columns)
    if not kernel.parts:
        used[columns] = True
        if "length_scale" in kernel.values:
            weights[columns] += kernel.values["length_scale"].square().reciprocal()
    for part in kernel.parts.values():
        _add_weights(part, weights, used)
