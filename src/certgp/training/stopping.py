"""When a fit must end before it is done, and how it can go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from certgp.checks import check_positive
from certgp.training.history import Callback, Iteration, OptimisationResult

_RESERVED, MOST_RESERVED = 0.15, 0.7  # of the time limit, for what follows training: at least, and at most
_SLOWEST = 20.0  # times the CPU seconds: no machine is taken for busier
INTERRUPTED = "the fit was interrupted"
OUT_OF_TIME = "max_seconds is used up; a longer limit gives a better fit"  # of several fits each has a part of it


class StopRule:
    """A training callback that ends a fit when its time is up or somebody asks for it, with the best model so far.

    Other callbacks end a fit for good. This one puts it off: a checkpoint stays, to go on from. ``reason`` says why,
    and is None as long as the fit may go on.
    """

    def __init__(
        self,
        max_seconds: float | None = None,
        now: Callable[[], float] = time.perf_counter,
        worked: Callable[[], float] = time.process_time,
    ) -> None:
        self._now, self._worked = now, worked
        self.reason: str | None = None
        self._max_seconds = None if max_seconds is None else check_positive("max_seconds", max_seconds)
        self._last = self._start = now()
        self._worked_before = worked()
        self._after, self._share, self._offset = 0.0, 1.0, 0.0
        self._most = MOST_RESERVED
        self.cuts: dict[str, str] = {}  # what was shortened to keep to the limit, in words

    def reserve(self, seconds: float, most: float = MOST_RESERVED) -> None:
        """So many CPU seconds follow training: conditioning on all rows, the noise. At most this share of the limit is
        kept for them; less than they take is enough where they can be shortened.
        """
        self._after, self._most = seconds, most

    def seconds_left(self) -> float:
        """Until the limit itself, by the clock on the wall: for what follows training. Infinite without a limit."""
        if self._max_seconds is None:
            return math.inf
        return max(0.0, self._share * (self._max_seconds - self._offset) - self._used())

    def start_steps(self) -> None:
        """Iterations begin now: what came before, such as a scan of length-scales, is no measure of one."""
        self._last = self._now()

    def has_time_for(self, seconds: float) -> bool:
        """Would so many more seconds of training leave time for what follows?"""
        return self._max_seconds is None or self._used() + seconds <= self._allowed()

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
        if self._max_seconds is None:
            return self
        rule = StopRule(self._max_seconds, self._now, self._worked)
        rule._share, rule._offset = share, self._now() - self._start
        rule._after, rule._most, rule.reason = self._after, self._most, self.reason
        return rule

    def join(self, parts: Sequence[StopRule]) -> None:
        """Know what ended some of the fits that had parts of the time."""
        for each in parts:
            self.reason = self.reason or each.reason
            self.cuts |= each.cuts

    def _is_up_after(self, step: float) -> bool:
        if self.reason is None and self._max_seconds is not None and self._used() + step > self._allowed():
            self.reason = OUT_OF_TIME
        return self.reason is not None

    def _used(self) -> float:
        return self._now() - self._start

    def _allowed(self) -> float:
        """Seconds for training. What follows it takes as much longer than its CPU seconds as training did so far."""
        limit = self._max_seconds or 0.0
        worked = self._worked() - self._worked_before
        slowness = min(_SLOWEST, max(1.0, self._used() / worked)) if worked > 0.0 else 1.0
        reserved = min(self._most * limit, max(_RESERVED * limit, slowness * self._after))
        return self._share * max(0.0, limit - reserved - self._offset)


def stop_rules(callbacks: Sequence[Callback] | None) -> list[StopRule]:
    """Those among some callbacks."""
    return [each for each in callbacks or () if isinstance(each, StopRule)]


def with_cuts(outcome: OptimisationResult, cuts: Mapping[str, str]) -> OptimisationResult:
    """The same outcome, which says what was shortened to keep to a time limit (``StopRule.cuts``)."""
    if not cuts:
        return outcome
    return replace(outcome, reason=f"{outcome.reason}; to keep to max_seconds, {', '.join(cuts.values())}")


def is_out_of_time(outcome: OptimisationResult) -> bool:
    """Did a time limit end the fit, and not the user?"""
    return outcome.stopped and outcome.reason.startswith(OUT_OF_TIME)


def interrupted_outcome() -> OptimisationResult:
    """Of a fit that the user interrupted."""
    return replace(OptimisationResult.none(), converged=False, stopped=True, reason=INTERRUPTED)
