"""How to multiply one-dimensional functions over a set of multi-indices so that common factors are shared."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_SPLITS_TRIED_UP_TO = 8  # positions
_Index = tuple[int, ...]
_Step = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ProductPlan:
    """prod_j H_j[k_j] for all multi-indices k of a set, as a list of products of two rows.

    The rows that a step may use are, in this order: a row of ones, the tables H_0, H_1, ... of the dimensions, and the
    results of the steps before it. The last ``size`` steps give the multi-indices of the set, in its order. The steps
    before them are products over parts of the dimensions; there are few distinct ones, so nearly all work is in the
    last step of each multi-index.
    """

    counts: tuple[int, ...]  # functions needed per dimension
    first: NDArray[np.uintp]  # (steps,) row of the one factor
    second: NDArray[np.uintp]  # (steps,) row of the other
    size: int
    indices: NDArray[np.int64]  # (r, d), the set itself

    @staticmethod
    def of(indices: NDArray[np.int64]) -> ProductPlan:
        """Plan of an index set (r, d)."""
        counts = tuple(int(top) + 1 for top in indices.max(axis=0))
        members = [tuple(row) for row in indices.tolist()]
        steps: list[_Step] = []
        rows = _Builder(counts, steps).rows(tuple(range(len(counts))), members)
        if len(counts) == 1:
            steps += [(row, 0) for row in rows]
        pairs = np.array(steps, dtype=np.uintp)
        return ProductPlan(counts, pairs[:, 0].copy(), pairs[:, 1].copy(), len(members), indices)

    @property
    def offsets(self) -> NDArray[np.uintp]:
        """Row at which the table of each dimension starts, and the first row after the tables: (d + 1,)."""
        return np.cumsum([1, *self.counts], dtype=np.uintp)


@dataclass(frozen=True, eq=False)
class _Builder:
    counts: tuple[int, ...]
    steps: list[_Step]

    def rows(self, dimensions: _Index, members: list[_Index]) -> list[int]:
        """Rows that hold the products of these distinct ``members`` (degrees of ``dimensions``); adds the steps."""
        if len(dimensions) == 1:
            start = 1 + sum(self.counts[: dimensions[0]])
            return [start + degree for (degree,) in members]
        here, there = _halves(members)
        factors = []
        for side in (here, there):
            parts = sorted({_pick(member, side) for member in members})
            factors.append(dict(zip(parts, self.rows(_pick(dimensions, side), parts), strict=True)))
        start = 1 + sum(self.counts) + len(self.steps)
        self.steps.extend((factors[0][_pick(m, here)], factors[1][_pick(m, there)]) for m in members)
        return list(range(start, start + len(members)))


def _halves(members: list[_Index]) -> tuple[_Index, _Index]:
    """Two groups of positions with few distinct parts; the one with fewer of them comes first.

    Up to eight positions all even splits are tried. Of more, positions with many degrees are dealt out in turn: there
    are too many splits to try, and most of the positions hold few degrees anyway.
    """
    everything = range(len(members[0]))
    if len(everything) <= _SPLITS_TRIED_UP_TO:
        splits = list(combinations(everything, len(everything) // 2))
    else:
        by_degrees = sorted(everything, key=lambda i: -len({member[i] for member in members}))
        splits = [tuple(sorted(by_degrees[::2]))]

    def parts(here: _Index) -> list[tuple[int, _Index]]:
        there = tuple(i for i in everything if i not in here)
        return sorted((len({_pick(member, side) for member in members}), side) for side in (here, there))

    (_, fewer), (_, more) = min(map(parts, splits), key=lambda sides: sides[0][0] + sides[1][0])
    return fewer, more


def _pick(member: _Index, positions: _Index) -> _Index:
    return tuple(member[i] for i in positions)
