"""Which rows a certificate of a local model conditions on: sets that contain the model's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certgp.gp.neighbours import earlier_neighbours

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
_ROWS = 4096  # compared at a time


def larger_sets(points: Array, sets: Indices, count: int) -> Indices:
    """For each row its own set, and the nearest other rows before it, ``count`` in all: (N, count), -1 for no row."""
    found = earlier_neighbours(points, count)
    return np.concatenate([_join(*part) for part in _parts(sets, found)]) if len(found) else found


def _parts(sets: Indices, found: Indices) -> list[tuple[Indices, Indices]]:
    return [(sets[start : start + _ROWS], found[start : start + _ROWS]) for start in range(0, len(sets), _ROWS)]


def _join(sets: Indices, found: Indices) -> Indices:
    """``sets`` and then what ``found`` adds to them, as wide as the wider of the two."""
    known = (found[:, :, None] == sets[:, None, :]).any(2) | (found < 0)
    both = np.concatenate([sets, np.where(known, -1, found)], 1)
    order = np.argsort(both < 0, axis=1, kind="stable")
    return np.take_along_axis(both, order, 1)[:, : max(sets.shape[1], found.shape[1])]


def nearest_before(points: Array, row: int, count: int) -> Indices:
    """The ``count`` rows before a row that are nearest to it."""
    if row <= count:
        return np.arange(row)
    distances = np.square(points[:row] - points[row]).sum(1)
    return np.sort(np.argpartition(distances, count)[:count])
