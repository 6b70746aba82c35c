"""Where peers are ahead of certgp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from league.scores import METRICS
from league.table import Table


@dataclass(frozen=True)
class Loss:
    """The best peer is better than a model of ours on the splits that both were played on."""

    data: str
    measure: str
    ours: str
    our_value: float
    peer: str
    peer_value: float
    standard_error: float | None  # of the peer's mean; RMSE has none

    @property
    def gap(self) -> float:
        return self.our_value - self.peer_value

    def cells(self) -> list[str]:
        in_errors = f"{self.gap / self.standard_error:.1f}" if self.standard_error else ""
        values = [f"{value:.3f}" for value in (self.our_value, self.peer_value)]
        gap = f"{self.gap:.4f}"
        return [self.data, self.measure.upper(), self.ours, values[0], self.peer, values[1], gap, in_errors]


def losses(table: Table, ours: Sequence[str], peers: Sequence[str]) -> list[Loss]:
    """Places where the first of the peers is ahead of all these models of ours."""
    found = (_loss(table, data, measure, ours, peers) for data in table.data for measure in METRICS)
    return [loss for loss in found if loss is not None]


def _loss(table: Table, data: str, measure: str, ours: Sequence[str], peers: Sequence[str]) -> Loss | None:
    """None where ours is not behind, or one side has no result."""
    sides = [[name for name in names if table.splits(data, name)] for names in (ours, peers)]
    splits = table.common_splits(data, [*sides[0], *sides[1]]) if all(sides) else []
    best = [_best(table, data, measure, names, splits) for names in sides]
    if best[0] is None or best[1] is None or best[0][1] <= best[1][1]:
        return None
    (model, our_value), (peer, peer_value) = best
    error = None if measure == "rmse" else table.standard_error(data, peer, measure, splits)
    return Loss(data, measure, model, our_value, peer, peer_value, error)


def _best(
    table: Table, data: str, measure: str, names: Iterable[str], splits: Sequence[int]
) -> tuple[str, float] | None:
    values = {name: table.value(data, name, measure, splits) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    return min(known.items(), key=lambda each: each[1]) if known else None
