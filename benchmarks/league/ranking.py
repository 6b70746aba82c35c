"""Ranks of contestants over data sets, and how far apart average ranks must be to mean something."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import studentized_range

from league.table import Table

Array = NDArray[np.float64]
METRICS = ("nlpd", "crps", "rmse")  # contestants are ranked by these; lower is better
LEVEL = 0.05
DEALS = 9_999
LEAST_P = 1.0 / (DEALS + 1)


@dataclass(frozen=True, eq=False)
class Ranking:
    """By one measure: rank 1 is best, equal values share their ranks, no value is last."""

    measure: str
    contestants: tuple[str, ...]
    data: tuple[str, ...]
    ranks: Array  # (data, contestants)

    @property
    def average(self) -> dict[str, float]:
        """Best first."""
        means = dict(zip(self.contestants, self.ranks.mean(0).tolist(), strict=True))
        return dict(sorted(means.items(), key=lambda each: each[1]))

    @property
    def p_value(self) -> float:
        """Friedman's test that all contestants are alike: how often ranks that are dealt anew on each data set have
        averages so far apart. At least LEAST_P, as the ranks themselves are one of the deals.

        His chi^2 and its F form are limits for many data sets, and where few of them agree these are wrong by powers
        of ten.
        """
        rng, (n, k) = np.random.default_rng(0), self.ranks.shape
        deals = rng.permuted(np.broadcast_to(self.ranks, (DEALS, n, k)), axis=2)
        spread, others = (np.sum(ranks.sum(-2) ** 2, axis=-1) for ranks in (self.ranks, deals))
        return float(1 + np.sum(others >= spread)) * LEAST_P

    @property
    def critical_difference(self) -> float:
        """Nemenyi: average ranks further apart than q sqrt(k (k + 1) / (6 N)) differ at the 5 % level."""
        n, k = self.ranks.shape
        q = float(studentized_range.ppf(1.0 - LEVEL, k, math.inf)) / math.sqrt(2.0)
        return q * math.sqrt(k * (k + 1) / (6.0 * n))


def groups_alike(average: dict[str, float], difference: float) -> list[tuple[str, ...]]:
    """Largest groups, best first, within which no two average ranks are further apart than ``difference``."""
    names, values = list(average), list(average.values())
    groups: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(names)):
        last = max(i for i in range(start, len(names)) if values[i] - values[start] <= difference)
        if last > start and last >= end + (len(groups) > 0):
            groups.append(tuple(names[start : last + 1]))
            end = last
    return groups


def full_block(
    table: Table, data: Sequence[str], contestants: Sequence[str], cannot: Callable[[str, str], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Data sets and contestants such that each of these was played on each of those, or cannot be; as many pairs as
    there are, and of equally many those with more data sets.
    """
    there = {(d, c): bool(table.splits(d, c)) or cannot(d, c) for d in data for c in contestants}
    best: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    for size in range(len(data), 0, -1):
        for chosen in combinations(data, size):
            complete = tuple(c for c in contestants if all(there[d, c] for d in chosen))
            if len(complete) > 1 and size * len(complete) > len(best[0]) * len(best[1]):
                best = chosen, complete
    return best


def ranks_on(table: Table, data: str, measure: str, contestants: Sequence[str]) -> dict[str, float]:
    """One more than the number of contestants that are better, each on the splits that both were played on.

    Equal values, or no split in common, count half; a contestant without a result comes after all that have one. Where
    all have the same splits, these are the ranks of their means. All ranks sum up to k (k + 1) / 2.
    """
    ranks = dict.fromkeys(contestants, 1.0)
    for one, other in combinations(contestants, 2):
        splits = table.common_splits(data, [one, other])
        values = [_value(table, data, measure, name, splits) for name in (one, other)]
        share = 0.5 if values[0] == values[1] else float(values[0] > values[1])
        ranks[one] += share
        ranks[other] += 1.0 - share
    return ranks


def _value(table: Table, data: str, measure: str, contestant: str, splits: Sequence[int]) -> float:
    """Infinity without a result. Without splits, it only counts whether there is one on any."""
    value = table.value(data, contestant, measure, splits or None)
    if value is None:
        return math.inf
    return value if splits else 0.0


def rank(table: Table, measure: str, data: Sequence[str], contestants: Sequence[str]) -> Ranking:
    """Ranks on each data set."""
    rows = [list(ranks_on(table, name, measure, contestants).values()) for name in data]
    return Ranking(measure, tuple(contestants), tuple(data), np.array(rows).reshape(len(data), len(contestants)))


def with_fewer_splits(table: Table, data: Sequence[str], contestants: Sequence[str]) -> list[str]:
    """Contestants that were played on fewer splits of a data set than another one, but on some."""
    counts = {name: {c: len(table.splits(name, c)) for c in contestants} for name in data}
    return [c for c in contestants if any(0 < counts[name][c] < max(counts[name].values()) for name in data)]
