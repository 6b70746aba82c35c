"""When a race must end: the user's callbacks stop it, or its time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from certgp.training.history import Callback, Iteration, tell
from certgp.training.stopping import StopRule


class Clock:
    """A training callback that passes records on to the user's, and the maker of the time limits of single fits."""

    def __init__(
        self,
        callbacks: Sequence[Callback],
        max_seconds: float | None = None,
        now: Callable[[], float] = time.perf_counter,
        worked: Callable[[], float] = time.process_time,
    ) -> None:
        self._callbacks, self._now, self._worked = tuple(callbacks), now, worked
        self._end = math.inf if max_seconds is None else now() + max_seconds
        self._stage = ""
        self.stopped = False  # by a callback of the user, or an interrupt

    @property
    def has_limit(self) -> bool:
        """Is there an end at all?"""
        return math.isfinite(self._end)

    @property
    def left(self) -> float:
        """Seconds to the end."""
        return max(0.0, self._end - self._now())

    def limit(self, share: float = 1.0) -> StopRule | None:
        """A time limit for one fit, which may use this share of the seconds that are left; None without an end."""
        return StopRule(max(1e-3, share * self.left), self._now, self._worked) if self.has_limit else None

    def announce(self, stage: str) -> None:
        """What the next fit is, for callbacks."""
        self._stage = stage

    def __call__(self, record: Iteration) -> bool:
        """Should the fit stop, because the user wants it?"""
        left = self.left if self.has_limit else None
        stage = f"{self._stage}, {record.stage}" if self._stage and record.stage else self._stage or record.stage
        self.stopped |= tell(self._callbacks, replace(record, stage=stage, seconds_left=left))
        return self.stopped
