"""What happened during training, one record per optimiser iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Iteration:
    """State after one iteration."""

    iteration: int
    value: float  # objective per row (negative log evidence or ELBO), lower is better
    gradient_norm: float
    seconds: float  # since the start of fit
    rank: int
    validation: float | None = None  # NLPD of held-out training rows in standardised units, where a fit looks at any
    rows: int | None = None  # that this iteration saw, where that is known
    stage: str = ""  # what the fit is doing: "start greedy", "training", "final of mercer"
    most: int | None = None  # iterations after which it ends at the latest, as far as that is known by now
    seconds_left: float | None = None  # to the time limit, where a race has one


Callback = Callable[[Iteration], bool | None]  # return True to stop
STOPPED = "a callback stopped the fit"  # a reason


def tell(callbacks: Sequence[Callback], record: Iteration) -> bool:
    """All callbacks see the record; True where one of them stops the fit."""
    return any([callback(record) for callback in callbacks])  # not a generator: that would skip some  # noqa: C419


@dataclass(frozen=True)
class StageSeen:
    """Iterations in a row that saw the same number of rows."""

    rows: int
    iterations: int
    value: float  # objective per row at the end
    seconds: float


@dataclass(frozen=True)
class History:
    """All iterations of a fit, in order: ``history[0]`` is the first, ``history[-1]`` the last, and ``for`` goes
    through them. ``values`` and ``seconds`` are arrays over all of them.
    """

    iterations: tuple[Iteration, ...] = ()

    def __len__(self) -> int:
        return len(self.iterations)

    def __iter__(self) -> Iterator[Iteration]:
        return iter(self.iterations)

    @overload
    def __getitem__(self, at: int) -> Iteration: ...
    @overload
    def __getitem__(self, at: slice) -> History: ...
    def __getitem__(self, at: int | slice) -> Iteration | History:
        return History(self.iterations[at]) if isinstance(at, slice) else self.iterations[at]

    def __add__(self, other: History) -> History:
        return History(self.iterations + other.iterations)

    @property
    def values(self) -> NDArray[np.float64]:
        """Objective per row at each iteration."""
        return np.array([i.value for i in self.iterations])

    @property
    def stages(self) -> tuple[StageSeen, ...]:
        """How many rows each stage of the fit saw, and for how long; empty where that is not known."""
        found: list[StageSeen] = []
        before = 0.0
        for rows, group in groupby(self.iterations, key=lambda each: each.rows):
            records = list(group)
            if rows is not None:
                found.append(StageSeen(rows, len(records), records[-1].value, records[-1].seconds - before))
            before = records[-1].seconds
        return tuple(found)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Seconds since the start at each iteration."""
        return np.array([i.seconds for i in self.iterations])


@dataclass(frozen=True, eq=False)
class OptimisationResult:
    """Where an optimiser ended and why."""

    parameters: NDArray[np.float64]
    value: float
    n_iter: int
    converged: bool
    reason: str
    stopped: bool  # by a callback
    history: History

    @staticmethod
    def none() -> OptimisationResult:
        """The outcome of a fit that kept the hyper-parameters it was given."""
        reason = "the hyper-parameters were kept as given (optimize=False or a constant target)"
        return OptimisationResult(np.zeros(0), float("nan"), 0, True, reason, False, History())
