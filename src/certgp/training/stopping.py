"""When a fit must end before it is done, and how it can go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from certgp.checks import check_positive
from certgp.training.history import Callback, Iteration, OptimisationResult

_TRAINING = 0.85  # of the time limit; the rest is for conditioning on all rows and for the noise
INTERRUPTED = "the fit was interrupted"


class StopRule:
    """A training callback that ends a fit when its time is up or somebody asks for it, with the best model so far.

    Other callbacks end a fit for good. This one puts it off: a checkpoint stays, to go on from. ``reason`` says why,
    and is None as long as the fit may go on.
    """

    def __init__(self, max_seconds: float | None = None, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self.reason: str | None = None
        self._max_seconds = None if max_seconds is None else check_positive("max_seconds", max_seconds)
        self._last = self._start = now()
        self._allowed = None if self._max_seconds is None else _TRAINING * self._max_seconds

    def ask(self, reason: str = INTERRUPTED) -> None:
        """End the fit after the present step; may be called by a signal handler."""
        self.reason = self.reason or reason

    def is_up(self) -> bool:
        """Must the fit end now? For loops within an iteration."""
        return self._is_up_after(0.0)

    def __call__(self, record: Iteration) -> bool:
        """Must the fit end? Also where another iteration like the last would take too long."""
        now = self._now()
        step, self._last = now - self._last, now
        return self._is_up_after(step)

    def part(self, share: float) -> StopRule:
        """A rule for the next of several fits, with this share of the seconds that are left."""
        if self._max_seconds is None or self._allowed is None:
            return self
        used = self._now() - self._start
        rule = StopRule(self._max_seconds, self._now)
        rule._allowed, rule.reason = share * max(0.0, self._allowed - used), self.reason
        return rule

    def join(self, parts: Sequence[StopRule]) -> None:
        """Know what ended some of the fits that had parts of the time."""
        for each in parts:
            self.reason = self.reason or each.reason

    def _is_up_after(self, step: float) -> bool:
        if self.reason is None and self._allowed is not None and self._now() - self._start + step > self._allowed:
            self.reason = f"max_seconds={self._max_seconds:g} is used up; a longer limit gives a better fit"
        return self.reason is not None


def stop_rules(callbacks: Sequence[Callback] | None) -> list[StopRule]:
    """Those among some callbacks."""
    return [each for each in callbacks or () if isinstance(each, StopRule)]


def interrupted_outcome() -> OptimisationResult:
    """Of a fit that the user interrupted."""
    return replace(OptimisationResult.none(), converged=False, stopped=True, reason=INTERRUPTED)
