"""Rows that lie in parts on other machines: tasks go to them, and only rows that are asked for come here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import Numbers
from certgp.data.rows import BlockTask, Positions, Rows, Weights
from certgp.data.skipped import Skipped
from certgp.data.store import StoredRows

R = TypeVar("R")
Task = Callable[[StoredRows, Any], R]
Chosen = Sequence[tuple[int, Any]]  # numbers of parts, each with an argument of the task


class Parts(Protocol):
    """Parts of rows, each on some machine."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Rows of each part."""

    def run(self, task: Task[R], chosen: Chosen) -> Iterator[R]:
        """task(part, argument) for the chosen parts, where they are; results come in this order."""

    def picked(self, task: Task[StoredRows], groups: Sequence[Chosen], counts: Sequence[int]) -> Parts:
        """New parts that stay there, one for each group: task(part, argument) of its members, joined."""

    def rows_per_part(self, n_rows: int) -> int | None:
        """How large parts of so many rows should be; None for so few that they had better come here."""


@dataclass(frozen=True)
class PartsLayout:
    """What the columns of all parts are."""

    n_inputs: int
    names: tuple[str, ...] | None
    has_weights: bool


class RemoteRows(Rows):
    """Rows in parts elsewhere. ``map`` and ``fold`` run there, ``take`` brings rows here."""

    weights_stay = True

    def __init__(self, parts: Parts, layout: PartsLayout, skipped: Skipped | None = None) -> None:
        self.parts, self.skipped, self._layout = parts, skipped, layout
        self.n_columns, self.names = layout.n_inputs, layout.names
        self._starts = np.cumsum([0, *parts.counts])
        self.n_rows = int(self._starts[-1])

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        found = self._fetch(positions)
        return found.take(slice(None))

    def weights(self, positions: Positions) -> Weights:
        if not self._layout.has_weights:
            return None
        where = np.arange(self.n_rows)[positions]
        order = np.argsort(where, kind="stable")
        found = np.empty(len(where))
        found[order] = np.concatenate([np.empty(0), *self.parts.run(_weights, self._located(where[order]))])
        return found

    def map(self, task: Callable[[Numbers, Numbers | None], R], rows: int) -> Iterator[R]:
        for results in self.parts.run(partial(_map_part, task), [(i, rows) for i in range(len(self.parts.counts))]):
            yield from results

    def fold(self, task: BlockTask[R], rows: int) -> R:
        chosen = [(i, (int(start), rows)) for i, start in enumerate(self._starts[:-1])]
        return reduce(add, self.parts.run(partial(_fold_part, task), chosen))

    def pick(self, positions: NDArray[np.int64]) -> Rows:
        """The rows at these positions: there, or here where they are few or not in order."""
        size = self.parts.rows_per_part(len(positions))
        if size is None or bool((np.diff(positions) <= 0).any()):
            return self._fetch(positions)
        chosen = self._located(positions)
        groups: list[list[tuple[int, Any]]] = [[]]
        counts = [0]
        for number, local in chosen:
            if counts[-1] + len(local) > size and counts[-1]:
                groups.append([])
                counts.append(0)
            mask = np.zeros(self.parts.counts[number], dtype=bool)
            mask[local] = True
            groups[-1].append((number, np.packbits(mask)))  # an eighth of a byte per row, whatever is picked
            counts[-1] += len(local)
        layout = replace(self._layout, names=self.names)
        return RemoteRows(self.parts.picked(_pick_marked, groups, counts), layout, self.skipped)

    def _fetch(self, positions: Positions) -> StoredRows:
        """Some rows, here."""
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(self.n_rows))
        order = np.argsort(positions, kind="stable")
        chosen = self._located(positions[order])
        parts = list(self.parts.run(_pick, chosen or [(0, np.empty(0, np.int64))]))
        joined = join_stored(parts)
        joined.names = self.names
        return joined if bool((np.diff(order) == 1).all()) else joined.stored(np.argsort(order, kind="stable"))

    def _located(self, positions: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Positions, in order, by part."""
        ends = np.searchsorted(positions, self._starts)
        found = [(i, positions[begin:end] - self._starts[i]) for i, (begin, end) in enumerate(pairwise(ends))]
        return [(i, local) for i, local in found if len(local)]


def join_stored(parts: Sequence[StoredRows]) -> StoredRows:
    """The rows of several parts that are in memory."""
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1:])


def _pick(part: StoredRows, positions: NDArray[np.int64]) -> StoredRows:
    return part.stored(positions)


def _weights(part: StoredRows, positions: NDArray[np.int64]) -> Weights:
    return part.weights(positions)


def _pick_marked(part: StoredRows, marks: NDArray[np.uint8]) -> StoredRows:
    return part.stored(np.flatnonzero(np.unpackbits(marks, count=part.n_rows)))


def _map_part(task: Callable[[Numbers, Numbers | None], R], part: StoredRows, rows: int) -> list[R]:
    return list(part.map(task, rows))


def _fold_part(task: BlockTask[R], part: StoredRows, where: tuple[int, int]) -> R:
    start, rows = where

    def moved(here: slice, X: Numbers, y: Numbers | None, weights: Weights) -> R:
        return task(slice(start + here.start, start + here.stop), X, y, weights)

    return part.fold(moved, rows)
