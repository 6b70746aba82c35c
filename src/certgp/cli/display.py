"""What moves on a terminal while a command works: stage, bar, figures, time. Nothing moves in a pipe."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from certgp.training import Iteration, Meter, Status

_BAR, _SHORT_BAR, _CLOCK, _LEFT = 16, 6, 7, 33  # columns of the bar, also on a narrow terminal, of clock and time left
_NARROW, _ONE_LINE = 110, 150  # columns: of a short bar below, of text and figures side by side from there on
_STOPPING = "stopping after this step; Ctrl-C again ends at once and saves nothing"


class Display:
    """A line at the bottom of standard error, which is looked up when it appears; figures stand below the text where a
    terminal is too narrow for both.
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._meter: Meter | None = None
        self._expected: float | None = None
        self._is_stopping = False

    def show(self, text: str, figures: str = "", share: float | None = None, now: bool = True) -> None:
        """Show this text from now on, with a bar where the ``share`` of the work that is done is known: ``now``, or
        within a quarter of a second.
        """
        if not sys.stderr.isatty():
            return
        if self._progress is None or self._task is None:
            self._progress, self._task = _start()
        note = _STOPPING if self._is_stopping else figures
        total = None if share is None else 1.0
        if not _has_one_line() and note:
            text, note = f"{text}\n{note}", ""
        self._progress.update(
            self._task, description=text, figures=note, total=total, completed=share or 0.0, refresh=now
        )

    def show_iteration(self, record: Iteration) -> None:
        """Show how far a fit is."""
        from certgp.training import Meter

        if not sys.stderr.isatty():
            return
        self._meter = self._meter or Meter()
        status = self._meter.read(record)
        of = "" if status.most is None else f"/{status.most}"
        number = f"iteration {status.iteration}{of}"
        text = f"fitting: {_cut(status.stage or 'training', _room() - len(f'fitting: , {number}'))}, {number}"
        first = record.iteration == 1
        self.show(text, _figures(status, self._seconds_left(status)), status.share, now=first)

    def expect(self, seconds: float) -> None:
        """The fit takes at most about so long."""
        self._expected = seconds

    def stopping(self) -> None:
        """Ctrl-C was pressed. Writes nothing itself, because a signal handler calls it."""
        self._is_stopping = True

    def clear(self) -> None:
        """Take the line back."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = None

    def _seconds_left(self, status: Status) -> float | None:
        known = [] if status.seconds_left is None else [status.seconds_left]
        known += [] if self._expected is None else [max(0.0, self._expected - status.seconds)]
        return min(known, default=None)


def _figures(status: Status, left: float | None) -> str:
    """The most telling first: a narrow terminal cuts the rest off."""
    from certgp.training.progress import time_left

    parts = time_left(left, status.stage_seconds_left)
    parts.append(f"objective/row {status.value:.4f}")
    parts += [] if status.validation is None else [f"held-out {status.validation:.4f}"]
    parts += [] if status.rows_per_second is None else [f"{status.rows_per_second:,.0f} rows/s"]
    return ", ".join([*parts, f"rank {status.rank}"])


def _has_one_line() -> bool:
    return shutil.get_terminal_size().columns >= _ONE_LINE


def _bar() -> int:
    return _BAR if shutil.get_terminal_size().columns >= _NARROW else _SHORT_BAR


def _room() -> int:
    """Columns for the text, where bar and clock are to be seen, and beside it the first figure."""
    return shutil.get_terminal_size().columns - _bar() - _CLOCK - (_LEFT if _has_one_line() else 0) - 3


def _cut(text: str, width: int) -> str:
    most = max(width, 8)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _start() -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    cut = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # gets what the others leave
    beside = _has_one_line()
    text = Column(no_wrap=True) if beside else cut
    figures = TextColumn("{task.fields[figures]}", markup=False, table_column=cut)
    progress = Progress(
        TextColumn("{task.description}", markup=False, table_column=text),
        BarColumn(_bar()),
        TimeElapsedColumn(),
        *([figures] if beside else []),
        console=Console(file=sys.stderr),
        transient=True,
        expand=True,
        refresh_per_second=4,
    )
    progress.start()
    return progress, progress.add_task("", total=None, figures="")
