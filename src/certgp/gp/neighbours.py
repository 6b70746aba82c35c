"""The nearest rows, behind one class: a tree in few dimensions, all distances in many, cells for many rows."""

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
ALL_DISTANCES = 50_000  # points; above, in more dimensions, cells
_CELLS_SEARCHED = 32
_SPARE = (
    8  # candidates beyond those asked for: float32 distances choose candidates, float64 distances choose among them
)
_BLOCK_NUMBERS = 2**24  # of distances held at a time
_GROWTH = 1.5  # of the rows that an index over earlier rows covers, from one to the next
_FIRST_STAGE = 512


class Neighbours:
    """Finds the nearest of some points (n, d), in Euclidean distance, ties by their order.

    Up to three dimensions a k-d tree, and all distances where points are few; both are exact. Many points in many
    dimensions are grouped in cells about sqrt(n) centres, of which the nearest few are searched: some of the nearest
    points may be missed, which no certificate minds (docs/decisions/0026).
    """

    def __init__(self, points: Array) -> None:
        self.points = np.ascontiguousarray(points)
        n, d = points.shape
        self._tree = cKDTree(self.points) if n and d <= TREE_DIMENSIONS else None
        self._cells = _Cells(self.points) if self._tree is None and n > ALL_DISTANCES else None

    def nearest(self, at: Array, count: int, own: Indices | None = None, before: Indices | None = None) -> Indices:
        """Row numbers (q, count) of the points nearest to ``at`` (q, d), nearest first; -1 where there are fewer.

        ``own`` (q,) are rows that must not be found (the row itself); ``before`` (q,) keeps only rows before these.
        """
        result = np.full((len(at), count), -1)
        wanted = min(count + (own is not None), len(self.points))
        if wanted and len(at):
            found = self._search(at, wanted, own, before)[:, :count]
            result[:, : found.shape[1]] = found
        return result

    def _search(self, at: Array, count: int, own: Indices | None, before: Indices | None) -> Indices:
        if self._tree is None and self._cells is None:
            return self._search_all(at, count, own, before)
        asked = min(count if before is None else math.ceil(2.0 * _GROWTH * count) + _SPARE, len(self.points))
        if self._tree is not None:
            _, found = self._tree.query(at, k=np.arange(1, asked + 1), workers=torch.get_num_threads())
            candidates = np.asarray(found, dtype=np.int64)
        elif self._cells is not None:
            candidates = self._sorted(at, self._cells.search(at, asked))
        result = _without(candidates, own, before)
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
        """Candidates by their distance in float64, ties by their number, those that are missing (-1) last."""
        found = np.sort(found, 1)
        distances = np.empty(found.shape)
        step = max(1, _BLOCK_NUMBERS // 8 // max(1, found.shape[1] * at.shape[1]))
        for start in range(0, len(at), step):
            part = slice(start, start + step)
            distances[part] = np.square(self.points[found[part]] - at[part, None]).sum(2)
        distances[found < 0] = math.inf
        return np.take_along_axis(found, np.argsort(distances, 1, kind="stable"), 1)


class _Cells:
    """An inverted file: points by the nearest of about sqrt(n) centres."""

    def __init__(self, points: Array) -> None:
        import faiss

        n, d = points.shape
        self._centre = points.mean(0)
        rows = np.ascontiguousarray(points - self._centre, dtype=np.float32)
        cells = math.isqrt(n)
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, cells)
        self._index.cp.niter, self._index.cp.max_points_per_centroid = 8, 64
        self._index.nprobe = _CELLS_SEARCHED
        # a sample in a fixed order: the same points always make the same cells
        self._index.train(rows[np.random.default_rng(0).choice(n, min(n, 64 * cells), replace=False)])
        self._index.add(rows)

    def search(self, at: Array, count: int) -> Indices:
        """Candidates (q, count), -1 where the cells hold fewer."""
        import faiss

        queries = np.ascontiguousarray(at - self._centre, dtype=np.float32)
        faiss.omp_set_num_threads(torch.get_num_threads())  # each query is one thread's: the result is the same
        _, found = self._index.search(queries, count)
        return np.asarray(found, dtype=np.int64)


def _without(found: Indices, own: Indices | None, before: Indices | None) -> Indices:
    """Without what is not wanted, the others closed up."""
    drop = np.zeros(found.shape, dtype=bool)
    if own is not None:
        drop |= found == own[:, None]
    if before is not None:
        drop |= found >= before[:, None]
    drop |= found < 0
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
