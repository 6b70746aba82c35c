"""A progress bar for training in epochs."""

from __future__ import annotations

import sys

from certgp.training.history import Iteration

_WIDTH = 20


class ProgressBar:
    """A training callback that shows how far a run is: one moving line on a terminal, one line per epoch elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total

    def __call__(self, record: Iteration) -> None:
        """Show the epoch that has just ended."""
        watched = sys.stdout.isatty()
        last = record.iteration >= self.total
        sys.stdout.write(f"{chr(13) if watched else ''}{self.line(record)}{'' if watched and not last else chr(10)}")
        sys.stdout.flush()

    def line(self, record: Iteration) -> str:
        """[######----] 6/10  objective/row .41  held-out NLPD .38  12.3 s."""
        done = min(_WIDTH, _WIDTH * record.iteration // self.total)
        score = "" if record.validation is None else f"  held-out score {record.validation:.4f}"
        return (
            f"[{'#' * done}{'-' * (_WIDTH - done)}] {record.iteration}/{self.total}  "
            f"objective/row {record.value:.4f}{score}  {record.seconds:.1f} s"
        )
