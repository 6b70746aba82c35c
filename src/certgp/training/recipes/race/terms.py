"""What a race may cost, and what it looks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from certgp.checks import check_choice, check_positive
from certgp.errors import InvalidInputError

PREFERENCES = ("accuracy", "proof")


@dataclass(frozen=True)
class Effort:
    """How thorough a race is. Costs are estimates, so that a race ends alike wherever and whenever it runs."""

    probe_rows: tuple[int, ...]  # of the rounds of probes, each of the better half of those before
    finalists: int  # methods trained on all rows but the held-out ones
    most_cost: float  # of all fits, in fits of the expected winner: another finalist must not exceed it ...
    free_seconds: float  # ... unless all fits are as short as this and it is expected to be ahead ...
    free_for_ties: float  # ... or as short as this and it may only come near


EFFORTS: Mapping[str, Effort] = {
    "low": Effort((500, 2_000), 1, 1.0, 12.0, 0.0),
    "medium": Effort((500, 2_000), 3, 2.3, 12.0, 0.0),
    "high": Effort((1_000, 4_000), 4, 6.0, 60.0, 60.0),
}


@dataclass(frozen=True)
class Terms:
    """The parameters of a race, by the names that users type; making one refuses what cannot work."""

    effort: str = "medium"
    max_seconds: float | None = None
    prefer: str = "accuracy"
    combine: bool = False  # may several finalists predict together?

    def __post_init__(self) -> None:
        check_choice("effort", self.effort, tuple(EFFORTS))
        check_choice("prefer", self.prefer, PREFERENCES)
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        if self.combine and self.needs_proof:
            raise InvalidInputError(
                "combine=True may end with a mixture of models, which has no certificate, and prefer='proof' needs "
                "one; leave one of them out"
            )

    @property
    def thoroughness(self) -> Effort:
        """The effort's numbers."""
        return EFFORTS[self.effort]

    @property
    def needs_proof(self) -> bool:
        """Must the winner's certificate be possible?"""
        return self.prefer == "proof"
