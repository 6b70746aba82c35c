"""Do cells of earlier code still stand? A sample of each group that is computed again says.

Every change of shared code changes the version of all cells that use it, most of them without any effect, and
computing all of them again takes many hours. So of each group (``trace.group_of``) a few out-of-date cells are drawn at
random among the affordable ones and computed again; the new figures replace the old ones. The group is confirmed for
today's version where the two-sided 95 % t interval of the mean change lies within a margin: .01 nats of NLPD, or 1 % of
any other figure. Then its other cells carry that beside the version that made them.

What was computed again counts as evidence also where it speaks against the group: a second try adds cells to the first
one's and forgets none. Cells that were never computed again are drawn first, since their change is that of all code
since they were made. Times are not compared: they are those of the version that made the cell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from certgp_paper.experiments.cells import Cell, Finished, Values
from certgp_paper.experiments.code import Compute, cell_version, is_outdated
from certgp_paper.experiments.experiment import Experiment
from certgp_paper.experiments.sample_means import SampleMean, sample_mean
from certgp_paper.experiments.store import CellStore
from certgp_paper.experiments.trace import group_of

NLPD = "nlpd"
MARGIN = 0.01  # nats of NLPD, or share of any other figure
FEWEST, USUAL = 3, 5  # cells of a sample
_DEAREST = 30.0  # seconds of a cell that may be drawn, as long as there are enough cheaper ones
_SEED = 0


@dataclass(frozen=True)
class Confirmation:
    """How far the cells of a group moved that were computed again, and what that says of the others."""

    what: str
    version: str
    score: str
    cells: int  # finished cells of the group
    changes: tuple[float, ...]  # of NLPD, or relative ones of another figure
    left: tuple[Finished, ...]  # cells of earlier code

    @property
    def mean_change(self) -> SampleMean:
        """Infinitely uncertain where fewer than three cells say nothing."""
        if len(self.changes) < FEWEST:
            return SampleMean(0.0, float("inf"))
        return sample_mean(self.changes)

    @property
    def largest_change(self) -> float:
        """Of all cells computed again, in size."""
        return max(map(abs, self.changes), default=0.0)

    @property
    def is_confirmed(self) -> bool:
        """Is the mean change within the margin?"""
        return self.mean_change.is_within(MARGIN)

    @property
    def mark(self) -> Values:
        """What the cells of earlier code carry once they are confirmed."""
        return {
            "version": self.version,
            "score": self.score,
            "cells": len(self.changes),
            "of": self.cells,
            "mean_change": round(self.mean_change.mean, 6),
            "largest_change": round(self.largest_change, 6),
        }

    def text(self) -> str:
        """Verdict and figures in a line."""
        unit = "NLPD" if self.score == NLPD else f"{self.score}, relative"
        verdict = "confirmed" if self.is_confirmed else "not confirmed"
        if not self.left:
            verdict = "all computed again"
        if len(self.changes) < FEWEST:
            return f"{self.what}: {verdict}; how far {len(self.changes)} of {self.cells} cells moved says nothing"
        return (
            f"{self.what}: {verdict}, {len(self.changes)} of {self.cells} cells computed again moved by "
            f"{self.mean_change.text(4)} on average and at most by {self.largest_change:.4f} ({unit})"
        )


def confirm_groups(
    found: Experiment,
    cells: Sequence[Cell],
    store: CellStore,
    count: int,
    renew: Callable[[Sequence[Cell]], None],
    at_hand: Callable[[Cell], bool] = lambda cell: True,
) -> Iterator[Confirmation]:
    """Each group of finished cells with some that are out of date; ``renew`` computes cells again and keeps them.

    Of every group at least ``count`` cells are computed again, and one of every data set. Cells of a group that is
    confirmed are marked in the store.
    """
    for key, group in _groups(store.finished(cells), found.compute).items():
        affordable = [each for each in group if is_outdated(each, found.compute) and at_hand(each.cell)]
        known = _renewed(group, key[1], found.score)
        renew([each.cell for each in draw_sample(affordable, known, count)])
        outcome = _judge(key, store.finished([each.cell for each in group]), found)
        if outcome.is_confirmed:
            store.confirm(outcome.left, outcome.mark)
        yield outcome


def _groups(finished: Sequence[Finished], compute: Compute) -> dict[tuple[str, str], list[Finished]]:
    """Cells by what they are and by their present version; only groups with some that are out of date."""
    groups: dict[tuple[str, str], list[Finished]] = {}
    for each in finished:
        version = cell_version(each.cell, compute)
        if version is not None:
            groups.setdefault((group_of(each.cell), version), []).append(each)
    return {key: group for key, group in groups.items() if any(is_outdated(each, compute) for each in group)}


def _judge(key: tuple[str, str], group: Sequence[Finished], found: Experiment) -> Confirmation:
    what, version = key
    changes = [_change(each, found.score) for each in _renewed(group, version, found.score)]
    left = tuple(each for each in group if is_outdated(each, found.compute))
    return Confirmation(what, version, found.score, len(group), tuple(changes), left)


def _renewed(group: Sequence[Finished], version: str, score: str) -> list[Finished]:
    """Cells of today's version that know the figure of an earlier one."""

    def is_known(each: Finished) -> bool:
        before = each.made_by.get("before", {})
        return each.made_by.get("version") == version and None not in (before.get(score), each.result.get(score))

    return [each for each in group if is_known(each)]


def _change(each: Finished, score: str) -> float:
    before, after = float(each.made_by["before"][score]), float(each.result[score])
    if score == NLPD or before == after:
        return after - before
    return (after - before) / abs(before) if before else float("inf")


def draw_sample(affordable: Sequence[Finished], known: Sequence[Finished], count: int) -> list[Finished]:
    """Cells to compute again beside those of which the change is known, so that there are ``count`` in all, at least.

    Data sets take turns, those with the fewest cells first, in random order within each; every one has its turn. Dear
    cells are left out where there are others.
    """
    cheap = [each for each in affordable if each.seconds <= _DEAREST]
    pool = cheap if len(cheap) >= count else sorted(affordable, key=lambda each: each.seconds)[:count]
    random.Random(_SEED).shuffle(pool)
    pool.sort(key=lambda each: "before" in each.made_by)
    turns = {data: sum(_data(each) == data for each in known) for data in map(_data, [*affordable, *known])}
    drawn: list[Finished] = []
    while pool and (len(known) + len(drawn) < count or any(not turns[_data(each)] for each in pool)):
        chosen = min(pool, key=lambda each: turns[_data(each)])  # the first of those with the fewest
        turns[_data(chosen)] += 1
        pool.remove(chosen)
        drawn.append(chosen)
    return drawn


def _data(each: Finished) -> object:
    return each.cell.settings.get("data", each.cell.settings.get("D"))
