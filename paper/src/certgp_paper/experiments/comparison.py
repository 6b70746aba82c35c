"""Our numbers beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, TypeVar

from certgp_paper.experiments.cells import Finished
from certgp_paper.published import Figure

Key = TypeVar("Key", bound=Hashable)
# half of the last digit that the paper prints: what is closer is equal
LINEAR_ROUNDING = 5e-3
DEEP_ROUNDING = {"nlpd": 5e-4, "rmse": 5e-4, "seconds": 0.5}


@dataclass(frozen=True)
class Comparison:
    """One of our figures beside the paper's, means and standard deviations over splits; lower is better."""

    ours: float | None  # None where nothing was computed
    ours_sd: float | None  # None with a single split
    paper: float | None
    paper_sd: float | None
    rounding: float

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper

    @property
    def in_sd(self) -> float | None:
        """The difference over sqrt(ours_sd^2 + paper_sd^2 + rounding^2 / 3).

        That is the scale on which two runs of one method on other splits differ, the last term being the variance of
        printing. It does not shrink with the number of splits: those of one data set share most of their rows. With a
        single split our spread is unknown and taken to be the paper's.
        """
        if self.difference is None or self.paper_sd is None:
            return None
        ours_sd = self.paper_sd if self.ours_sd is None else self.ours_sd
        return self.difference / math.sqrt(ours_sd**2 + self.paper_sd**2 + self.rounding**2 / 3.0)

    @property
    def equal_or_better(self) -> bool | None:
        """Not larger than the paper's figure at the precision of its print."""
        return None if self.difference is None else self.difference <= self.rounding


def comparison(values: Sequence[float], paper: Figure | None, rounding: float) -> Comparison:
    """Our values over splits, of which there may be none, beside a printed figure."""
    ours = mean(values) if values else None
    sd = stdev(values) if len(values) > 1 else None
    if paper is None:
        return Comparison(ours, sd, None, None, rounding)
    return Comparison(ours, sd, paper.mean, paper.sd, rounding)


def comparison_columns(metric: str, values: Sequence[float], paper: Figure | None) -> dict[str, Any]:
    """Columns of one metric of the deep tables."""
    both = comparison(values, paper, DEEP_ROUNDING[metric])
    return {
        metric: both.ours,
        f"{metric}_sd": both.ours_sd,
        f"paper_{metric}": both.paper,
        f"paper_{metric}_sd": both.paper_sd,
        f"{metric}_difference": both.difference,
        f"{metric}_difference_in_sd": both.in_sd,
        f"{metric}_equal_or_better": both.equal_or_better,
    }


def group_by(finished: Sequence[Finished], key: Callable[[Finished], Key]) -> Mapping[Key, list[Finished]]:
    """Finished cells by key, in the order in which keys first appear."""
    groups: dict[Key, list[Finished]] = {}
    for cell in finished:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def values(cells: Sequence[Finished], name: str) -> list[float]:
    """One result of several cells."""
    return [float(cell[name]) for cell in cells]
