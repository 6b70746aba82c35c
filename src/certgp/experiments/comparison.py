"""Our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from certgp.experiments.cells import Finished
from certgp.experiments.published import Figure

# half of the last digit that the paper prints, by metric: what is closer is equal
_ROUNDING = {"nlpd": 5e-4, "rmse": 5e-4, "seconds": 0.5}


def compared(metric: str, values: Sequence[float], paper: Figure | None) -> dict[str, Any]:
    """Columns of one metric: mean and sd over splits, the paper's, and the difference (negative: ours is smaller).

    The difference is also given in the paper's standard deviations over splits. "Equal or better" means not larger at
    the precision of the paper's print.
    """
    ours = mean(values)
    columns: dict[str, Any] = {metric: ours, f"{metric}_sd": stdev(values) if len(values) > 1 else None}
    figures = {"mean": None, "sd": None} if paper is None else {"mean": paper.mean, "sd": paper.sd}
    columns |= {f"paper_{metric}": figures["mean"], f"paper_{metric}_sd": figures["sd"]}
    difference = None if paper is None else ours - paper.mean
    return columns | {
        f"{metric}_difference": difference,
        f"{metric}_difference_in_sd": difference / paper.sd if difference is not None and paper and paper.sd else None,
        f"{metric}_equal_or_better": None if difference is None else difference <= _ROUNDING[metric],
    }


def grouped(finished: Sequence[Finished], key: Callable[[Finished], Hashable]) -> Mapping[Hashable, list[Finished]]:
    """Finished cells by key, in the order in which keys first appear."""
    groups: dict[Hashable, list[Finished]] = {}
    for cell in finished:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def values(cells: Sequence[Finished], name: str) -> list[float]:
    """One result of several cells."""
    return [float(cell[name]) for cell in cells]
