"""How far a fit is, told from the records that callbacks see: one way to say it, for Python and the command line."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from certgp.training.history import Iteration

_MEMORY = 0.7  # weight of what was known when a new iteration is timed
_CLEAR = "\r\x1b[K"  # back to the beginning of the line, and wipe it


@dataclass(frozen=True)
class Status:
    """Where a fit is, in numbers."""

    stage: str
    iteration: int
    most: int | None  # iterations after which it ends at the latest
    value: float  # objective per row
    gradient_norm: float
    validation: float | None  # the last held-out score of this stage
    rank: int
    rows: int | None
    rows_per_second: float | None
    seconds: float
    seconds_left: float | None  # at most, by the time limit
    stage_seconds_left: float | None  # of this stage at most, at the present pace; nothing is known of what follows

    @property
    def share(self) -> float | None:
        """Of the iterations allowed, those that are done."""
        return None if not self.most else min(1.0, self.iteration / self.most)

    def text(self) -> str:
        """All of it in one line."""
        of = "" if self.most is None else f"/{self.most}"
        return f"{self.stage or 'training'}: iteration {self.iteration}{of}, {self.figures()}"

    def figures(self) -> str:
        """The line behind stage and iteration."""
        parts = [f"objective/row {self.value:.5f}"]
        if math.isfinite(self.gradient_norm):
            parts.append(f"gradient {self.gradient_norm:.1e}")
        if self.validation is not None:
            parts.append(f"held-out score {self.validation:.4f}")
        parts.append(f"rank {self.rank}")
        if self.rows is not None:
            parts.append(f"{self.rows:,} rows")
        if self.rows_per_second is not None:
            parts.append(f"{self.rows_per_second:,.0f} rows/s")
        parts.append(f"{self.seconds:.1f} s")
        parts += time_left(self.seconds_left, self.stage_seconds_left)
        return ", ".join(parts)


def time_left(fit: float | None, stage: float | None) -> list[str]:
    """Words for the time left, of the fit where that is known."""
    if fit is not None:
        return [f"at most {fit:.0f} s left"]
    return [] if stage is None else [f"at most {stage:.0f} s left of this step"]


class Meter:
    """Follows the records of a fit and times them."""

    def __init__(self) -> None:
        self._last: Iteration | None = None
        self._pace: float | None = None  # seconds an iteration of this stage
        self._validation: float | None = None

    def read(self, record: Iteration) -> Status:
        """What the record says, with the pace of those before it."""
        last = self._last
        if last is None or (last.stage, last.rows) != (record.stage, record.rows) or last.seconds > record.seconds:
            self._pace = self._validation = None
        else:
            taken = record.seconds - last.seconds
            self._pace = taken if self._pace is None else _MEMORY * self._pace + (1.0 - _MEMORY) * taken
        self._last = record
        self._validation = self._validation if record.validation is None else record.validation
        speed = None if record.rows is None or not self._pace else record.rows / self._pace
        return Status(
            record.stage,
            record.iteration,
            record.most,
            record.value,
            record.gradient_norm,
            self._validation,
            record.rank,
            record.rows,
            speed,
            record.seconds,
            record.seconds_left,
            self._stage_seconds_left(record),
        )

    def _stage_seconds_left(self, record: Iteration) -> float | None:
        if self._pace is None or record.most is None:
            return None
        return self._pace * max(0, record.most - record.iteration)


class ProgressLine:
    """The callback behind ``verbose``: one line that moves on a terminal and in a notebook, else a line an iteration,
    as with ``every_line``.
    """

    def __init__(self, every_line: bool = False) -> None:
        self._every_line, self._meter, self._is_open = every_line, Meter(), False

    def __call__(self, record: Iteration) -> None:
        """Show the iteration that has just ended."""
        text = self._meter.read(record).text()
        if self._every_line or not is_redrawn():
            print(text, flush=True)
            return
        print(f"{_CLEAR}{text}", end="", flush=True)
        self._is_open = True

    def close(self) -> None:
        """What is printed next begins on a line of its own."""
        if self._is_open:
            print(flush=True)
        self._is_open = False


def is_redrawn() -> bool:
    """Can a line of standard output be taken back? On a terminal, and in a notebook, which is none."""
    return sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel")
