"""Who is first or nearly, and what contestants cost on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

from league.ranking import common_splits
from league.table import Table


def near_first(table: Table, measure: str, data: Sequence[str], contestants: Sequence[str]) -> dict[str, int]:
    """On how many data sets each is first, or behind by at most one standard error of the first one's mean."""
    counts = dict.fromkeys(contestants, 0)
    for name in data:
        splits = common_splits(table, name, contestants)
        values = {each: table.value(name, each, measure, splits) for each in contestants}
        known = {each: value for each, value in values.items() if value is not None}
        if not known:
            continue
        first = min(known, key=lambda each: known[each])
        error = table.standard_error(name, first, measure, splits) or 0.0
        for each, value in known.items():
            counts[each] += value <= known[first] + error
    return counts


def mean_seconds(table: Table, data: Sequence[str]) -> dict[str, float]:
    """Geometric means of CPU seconds over data sets, of contestants that have a result on all of them."""
    found = {}
    for name in table.contestants:
        values = [table.value(each, name, "cpu_seconds") for each in data]
        if values and None not in values:
            found[name] = math.exp(mean(math.log(max(value, 0.01)) for value in values))
    return found
