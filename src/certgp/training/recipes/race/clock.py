"""When a race must end: the user's callbacks stop it, or its time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from certgp.training.history import Callback, Iteration, tell


class Clock:
    """A training callback that passes records on to the user's and stops a fit whose time is up."""

    def __init__(
        self,
        callbacks: Sequence[Callback],
        max_seconds: float | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._callbacks, self._now = tuple(callbacks), now
        self._end = math.inf if max_seconds is None else now() + max_seconds
        self._deadline = self._end  # of the fit that runs now
        self._stage = ""
        self.stopped = False  # by a callback of the user
        self.expired = False  # has a fit been stopped because its time was up?

    @property
    def has_limit(self) -> bool:
        """Is there an end at all?"""
        return math.isfinite(self._end)

    @property
    def left(self) -> float:
        """Seconds to the end."""
        return max(0.0, self._end - self._now())

    def announce(self, stage: str) -> None:
        """What the next fit is, for callbacks."""
        self._stage = stage

    def allow(self, share: float) -> None:
        """The next fit may use this share of the seconds that are left."""
        self.expired = False
        self._deadline = self._now() + share * self.left if self.has_limit else math.inf

    def __call__(self, record: Iteration) -> bool:
        """Should the fit stop?"""
        left = self.left if self.has_limit else None
        stage = f"{self._stage}, {record.stage}" if self._stage and record.stage else self._stage or record.stage
        self.stopped |= tell(self._callbacks, replace(record, stage=stage, seconds_left=left))
        self.expired |= self._now() >= self._deadline
        return self.stopped or self.expired
