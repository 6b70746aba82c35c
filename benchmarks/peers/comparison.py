"""What is read from finished runs: how soon a model is as good as a peer in the end."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from peers.protocol import Point


@dataclass(frozen=True)
class Run:
    """One fit of one contestant."""

    data: str
    rank: int
    split: int
    round: int
    contestant: str
    is_peer: bool
    trace: tuple[Point, ...]
    about: dict[str, object]

    @property
    def final(self) -> Point:
        return self.trace[-1]

    @property
    def line(self) -> str:
        """The end of this run in words."""
        end = self.final
        return (
            f"{self.data} split {self.split} round {self.round} {self.contestant}: NLPD {end.nlpd:.4f} "
            f"RMSE {end.rmse:.4f} {end.seconds:.1f} s ({end.cpu_seconds:.1f} s CPU, {len(self.trace)} points)"
        )


@dataclass(frozen=True)
class Race:
    """One model against one peer on the same rows in the same round."""

    data: str
    rank: int
    split: int
    round: int
    peer: str
    model: str
    target: float  # the peer's final NLPD
    peer_seconds: float
    peer_first_seconds: float  # when the peer's own trace first was at its final NLPD
    seconds: float | None  # when the model's trace first was there; None: never
    fraction: float | None  # seconds / peer_seconds
    cpu_fraction: float | None  # the same in CPU time
    fraction_of_first: float | None  # seconds / peer_first_seconds


def time_to_target(trace: Sequence[Point], target: float) -> Point | None:
    """The first point with an NLPD no worse than the target."""
    return next((point for point in trace if point.nlpd <= target), None)


def race(peer: Run, model: Run) -> Race:
    """How soon the model was as good as the peer in the end."""
    target, end = peer.final.nlpd, peer.final
    reached, first = time_to_target(model.trace, target), time_to_target(peer.trace, target) or end
    return Race(
        *(peer.data, peer.rank, peer.split, peer.round, peer.contestant, model.contestant, target),
        peer_seconds=end.seconds,
        peer_first_seconds=first.seconds,
        seconds=reached and reached.seconds,
        fraction=reached and reached.seconds / end.seconds,
        cpu_fraction=reached and reached.cpu_seconds / end.cpu_seconds,
        fraction_of_first=reached and reached.seconds / first.seconds,
    )


def races(runs: Iterable[Run]) -> Iterator[Race]:
    """Every peer against every model where both ran on the same rows in the same round."""
    rounds: dict[tuple[str, int, int, int], list[Run]] = defaultdict(list)
    for run in runs:
        rounds[run.data, run.rank, run.split, run.round].append(run)
    for group in rounds.values():
        yield from (race(peer, model) for peer in group if peer.is_peer for model in group if not model.is_peer)


def summarise_races(all_races: Iterable[Race]) -> list[dict[str, object]]:
    """Medians over splits and rounds; a race that was not won counts as infinitely long (None)."""
    groups: dict[tuple[str, int, str, str], list[Race]] = defaultdict(list)
    for each in all_races:
        groups[each.data, each.rank, each.peer, each.model].append(each)
    measures = ("target", "peer_seconds", "seconds", "fraction", "cpu_fraction", "fraction_of_first")
    return [
        dict(zip(("data", "rank", "peer", "model"), key, strict=True))
        | {"races": len(group), "reached": sum(each.seconds is not None for each in group)}
        | {name: median_or_none([getattr(each, name) for each in group]) for name in measures}
        for key, group in groups.items()
    ]


def summarise_runs(runs: Iterable[Run]) -> list[dict[str, object]]:
    """Medians of the final points over splits and rounds."""
    groups: dict[tuple[str, int, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.data, run.rank, run.contestant].append(run)
    measures = ("nlpd", "rmse", "objective_per_row", "seconds", "cpu_seconds")
    return [
        dict(zip(("data", "rank", "contestant"), key, strict=True))
        | {"runs": len(group)}
        | {name: median_or_none([getattr(run.final, name) for run in group]) for name in measures}
        for key, group in groups.items()
    ]


def median_or_none(values: Sequence[float | None]) -> float | None:
    """The median where None is worse than any number; None where the median is not a number."""
    middle = median(math.inf if value is None or math.isnan(value) else value for value in values)
    return middle if math.isfinite(middle) else None


def plain(value: object) -> object:
    """Dataclasses as dictionaries and numbers that JSON cannot write as None."""
    if isinstance(value, (Run, Race)):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
