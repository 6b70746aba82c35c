"""Who is first or nearly, and what contestants cost on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

from league.ranking import ranks_on
from league.table import Table


def near_first(table: Table, measure: str, data: Sequence[str], contestants: Sequence[str]) -> dict[str, int]:
    """On how many data sets each is first, or behind the first by at most one standard error of their difference on
    the splits that both have.
    """
    counts = dict.fromkeys(contestants, 0)
    for name in data:
        ranks = ranks_on(table, name, measure, contestants)
        first = min(ranks, key=lambda each: ranks[each])
        for each in contestants:
            splits = table.common_splits(name, [first, each])
            value, best = (table.value(name, which, measure, splits) for which in (each, first))
            if value is not None and best is not None:
                error, _ = error_of(table, name, first, each, measure, splits)
                counts[each] += each == first or value - best <= error
    return counts


def error_of(
    table: Table, data: str, first: str, other: str, measure: str, splits: Sequence[int]
) -> tuple[float, bool]:
    """Standard error of the difference, and whether it is paired; else that of the first one's mean."""
    paired = table.difference_error(data, first, other, measure, splits)
    if paired is not None:
        return paired, True
    return table.standard_error(data, first, measure, splits) or 0.0, False


def mean_seconds(table: Table, data: Sequence[str]) -> dict[str, float]:
    """Geometric means of CPU seconds over data sets, of contestants that have a result on all of them."""
    found = {}
    for name in table.contestants:
        values = [table.value(each, name, "cpu_seconds") for each in data]
        if values and None not in values:
            found[name] = math.exp(mean(math.log(max(value, 0.01)) for value in values))
    return found
