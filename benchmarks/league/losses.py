"""Where peers are ahead of certgp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.ranking import METRICS
from league.standing import error_of
from league.table import Table


@dataclass(frozen=True)
class Loss:
    """A peer beside a model of ours on the splits that both were played on; better where the gap is positive."""

    data: str
    measure: str
    ours: str
    our_value: float
    peer: str
    peer_value: float
    splits: int
    standard_error: float  # of the difference; 0 where it is not known
    is_paired: bool

    @property
    def gap(self) -> float:
        return self.our_value - self.peer_value

    def cells(self) -> list[str]:
        mark = "" if self.is_paired else "\\*"
        in_errors = f"{self.gap / self.standard_error:.1f}{mark}" if self.standard_error else ""
        values = [f"{value:.3f}" for value in (self.our_value, self.peer_value)]
        names = [self.data, self.measure.upper(), self.ours, values[0], self.peer, values[1]]
        return [*names, f"{self.gap:.4f}", in_errors, str(self.splits)]


def losses(table: Table, ours: Sequence[str], peers: Sequence[str]) -> list[Loss]:
    """Places where a peer is ahead of all these models of ours."""
    return [loss for loss in compared(table, ours, peers) if loss.gap > 0.0]


def compared(table: Table, ours: Sequence[str], peers: Sequence[str]) -> list[Loss]:
    """Of each place the peer that is furthest ahead of the nearest of ours, or least behind it, each on the splits
    that both have.
    """
    found = (_furthest(table, data, measure, ours, peers) for data in table.data for measure in METRICS)
    return [loss for loss in found if loss is not None]


def _furthest(table: Table, data: str, measure: str, ours: Sequence[str], peers: Sequence[str]) -> Loss | None:
    """None where one side has no result."""
    nearest = []
    for peer in peers:
        pairs = [pair for model in ours if (pair := _pair(table, data, measure, model, peer)) is not None]
        if pairs:
            nearest.append(min(pairs, key=lambda pair: pair.gap))
    return max(nearest, key=lambda pair: pair.gap, default=None)


def _pair(table: Table, data: str, measure: str, model: str, peer: str) -> Loss | None:
    splits = table.common_splits(data, [model, peer])
    our_value, peer_value = (table.value(data, name, measure, splits) for name in (model, peer))
    if our_value is None or peer_value is None:
        return None
    error, is_paired = error_of(table, data, peer, model, measure, splits)
    return Loss(data, measure, model, our_value, peer, peer_value, len(splits), error, is_paired)
