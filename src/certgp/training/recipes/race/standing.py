"""What a method has reached in a race, and who is ahead of whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from certgp.data import Chunk
from certgp.gp import GaussianProcess, Mixture
from certgp.training.recipes.race.entry import Entry
from certgp.training.recipes.trainer import Fit

Array = NDArray[np.float64]
_PRICE_OF_PROOF = 0.01  # in held-out NLPD: what a method that can be certified may cost where prefer="accuracy"
_FURTHEST = math.log(4.0)  # times more rows, after which that ends
_TRUST = 0.5  # share of a gain between two rounds that goes on where the number of features is fixed


@dataclass(frozen=True, eq=False)
class Standing:
    """A method trained on some rows, and the losses of the held-out rows."""

    entry: Entry
    fit: Fit
    positions: NDArray[np.int64]  # of the rows that it has seen
    losses: Array
    seconds: float  # of CPU time, for this fit and its scores
    warnings: tuple[Warning, ...] = ()
    before: Standing | None = None  # of the round before
    is_final: bool = False
    cuts: Mapping[str, str] = field(default_factory=dict)  # what was shortened to keep to a time limit, in words

    @property
    def name(self) -> str:
        """Of the method."""
        return self.entry.name

    @property
    def score(self) -> float:
        """Mean negative log predictive density of the held-out rows; lower is better."""
        return float(self.losses.mean())

    @property
    def total_seconds(self) -> float:
        """Of this fit and those before."""
        return self.seconds + (0.0 if self.before is None else self.before.total_seconds)

    def predicted_score(self, n_rows: int) -> float:
        """What training on so many rows would reach: the gain from the round before goes on in log(rows), all of it for
        a method that keeps its rows, half of it and not for long for others.
        """
        if self.before is None or len(self.positions) <= len(self.before.positions):
            return self.score
        slope = (self.before.score - self.score) / math.log(len(self.positions) / len(self.before.positions))
        further = max(0.0, math.log(n_rows / len(self.positions)))
        gained = further if self.entry.keeps_gaining else _TRUST * min(further, _FURTHEST)
        return self.score - max(0.0, slope) * gained


def held_out_losses(process: GaussianProcess, rows: Chunk) -> Array:
    """Negative log predictive density (n,) of rows, each with the noise of its own weight."""
    return -Mixture.of_observations(process, rows.X, rows.weight).log_density(rows.y.numpy())


def sort_by_score(standings: Iterable[Standing]) -> list[Standing]:
    """The best first."""
    return sorted(standings, key=lambda each: each.score)


def find_ties(standings: Iterable[Standing]) -> list[Standing]:
    """The best and those whose mean loss exceeds its by no more than the standard error of the difference: below that,
    rounding would decide.
    """
    ranked = sort_by_score(standings)
    return [each for each in ranked if each.score - ranked[0].score <= standard_error(each, ranked[0])]


def standard_error(one: Standing, other: Standing) -> float:
    """Of the difference between two scores on the same rows."""
    return float((one.losses - other.losses).std() / np.sqrt(len(one.losses)))


def choose_winner(standings: Sequence[Standing]) -> Standing:
    """The best, or a method that can be certified where held-out rows cannot tell it from the best and the price, as
    far as they know it, is small.
    """
    tied = find_ties(standings)
    dearest = tied[0].score + _PRICE_OF_PROOF
    return next((each for each in tied if each.entry.can_be_certified and each.score <= dearest), tied[0])


def keep_better_half(standings: Iterable[Standing]) -> list[Standing]:
    """The better half, and those that held-out rows cannot tell from its best."""
    ranked, tied = sort_by_score(standings), find_ties(standings)
    half = ranked[: (len(ranked) + 1) // 2]
    return [*half, *(each for each in tied if each not in half)]
