"""Which products of one-dimensional eigenfunctions to keep, and what is lost by dropping the rest.  [theory sec. 2]"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from certgp.errors import InvalidInputError

IndexSet = NDArray[np.int64]  # (r, d) degrees k = 0, 1, 2, ...


def optimal_indices(ratios: Sequence[float] | NDArray[np.float64], rank: int) -> IndexSet:
    """The ``rank`` multi-indices of largest eigenvalue prod_j q_j^{k_j}, best first.

    Best-first search on the cost c.k, c_j = -log q_j. Each index has one parent (decrement its last non-zero
    coordinate in the order of increasing cost), so it is generated exactly once: O(r d log(r d)). Ties go to the
    smaller tuple.
    """
    costs = -np.log(check_ratios(ratios))
    # whole multiples of 1e-10 of the smallest cost: equal eigenvalues tie exactly, however their inputs were rounded
    whole = [round(cost) for cost in costs / costs.min() * 1e10]
    order = np.argsort(whole, kind="stable")
    chosen = list(itertools.islice(_cheapest_first([whole[j] for j in order]), rank))
    indices = np.empty((rank, len(costs)), dtype=np.int64)
    indices[:, order] = np.array(chosen, dtype=np.int64)
    return indices


def check_ratios(ratios: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratios q_j of successive eigenvalues, of which 0 < q_j < 1 must be left after rounding."""
    q = np.asarray(ratios, dtype=np.float64)
    lost = ~((q > 0.0) & (q < 1.0))
    if lost.any():
        raise InvalidInputError(
            "length_scale / input_scale must lie between about 1e-15 and 1e150: beyond, successive eigenvalues have "
            f"the ratio {q[lost][0]:g} in float64; check the units of the inputs"
        )
    return q


def _cheapest_first(costs: list[int]) -> Iterator[tuple[int, ...]]:
    heap: list[tuple[int, tuple[int, ...], int]] = [(0, (0,) * len(costs), 0)]
    while True:
        cost, index, last = heapq.heappop(heap)
        yield index
        for j in range(last, len(costs)):
            child = (*index[:j], index[j] + 1, *index[j + 1 :])
            heapq.heappush(heap, (cost + costs[j], child, j))


def total_degree_indices(dimension: int, rank: int) -> IndexSet:
    """The first ``rank`` multi-indices by total degree, then lexicographically (the paper's order for MGP)."""
    levels = (_compositions(dimension, degree) for degree in itertools.count())
    return np.array(list(itertools.islice(itertools.chain.from_iterable(levels), rank)), dtype=np.int64)


def _compositions(dimension: int, degree: int) -> Iterator[tuple[int, ...]]:
    """All degrees (k_1, .., k_d) that sum to ``degree``, in lexicographic order."""
    if dimension == 1:
        yield (degree,)
        return
    for first in range(degree + 1):
        for rest in _compositions(dimension - 1, degree - first):
            yield (first, *rest)


def box_indices(dimension: int, rank: int) -> IndexSet:
    """All degrees below h in every dimension, h the largest integer with h^d <= rank (the paper's set for DMGP)."""
    side = max(1, round(rank ** (1.0 / dimension)))
    while side > 1 and side**dimension > rank:
        side -= 1
    return np.array(list(itertools.product(range(side), repeat=dimension)), dtype=np.int64)


def eigenvalue_tail(ratios: Sequence[float] | NDArray[np.float64], indices: IndexSet) -> float:
    r"""Sum of the dropped eigenvalues of a lower set, relative to the signal variance, without cancellation.

    With h(k') the largest last coordinate above the prefix k', all terms are positive:

        T_d(S) = sum_{k' in proj S} p(k') q_d^{h(k') + 1} + T_{d-1}(proj S),    p(k') = prod_j (1 - q_j) q_j^{k'_j}

    A set that is not lower (one with an index whose predecessor is missing) is summed as 1 - sum of the kept
    eigenvalues.
    """
    q = np.asarray(ratios, dtype=np.float64)
    degrees = {tuple(map(int, row)) for row in indices}
    if not _is_lower(degrees):
        kept = [math.prod((1 - qj) * qj**k for qj, k in zip(q, index, strict=True)) for index in degrees]
        return max(0.0, 1.0 - math.fsum(kept))
    terms: list[float] = []
    for d in range(len(q) - 1, -1, -1):
        heights: dict[tuple[int, ...], int] = {}
        for index in degrees:
            heights[index[:d]] = max(heights.get(index[:d], -1), index[d])
        terms += [
            math.exp(
                sum(math.log1p(-q[j]) + k * math.log(q[j]) for j, k in enumerate(prefix)) + (h + 1) * math.log(q[d])
            )
            for prefix, h in heights.items()
        ]
        degrees = set(heights)
    return math.fsum(terms)


def _is_lower(degrees: set[tuple[int, ...]]) -> bool:
    """Does every index bring all its predecessors?"""
    return all(
        k == 0 or (*index[:j], k - 1, *index[j + 1 :]) in degrees for index in degrees for j, k in enumerate(index)
    )
