"""How far the rounds of a local fit have come, and what is said of them at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from certgp.training.full_batch.trials import Trial
from certgp.training.history import STOPPED, History, OptimisationResult

GAIN = 0.01  # nats per row of fresh rows, below which another round is not worth it


@dataclass(eq=False)
class Progress:
    """What the rounds so far have done."""

    started: float
    history: History = field(default_factory=History)
    trials: list[Trial] = field(default_factory=list)
    gain: float = math.inf  # of the last round, on rows that it had not seen
    stopped: bool = False


def outcome_of(progress: Progress, max_iter: int) -> OptimisationResult:
    """How a fit with this progress ended."""
    history = progress.history
    value = history[-1].value if len(history) else float("nan")
    used_up = len(history) >= max_iter and progress.gain > GAIN
    converged = not (used_up or progress.stopped)
    reason = f"all rounds are done; the last improved the NLPD of its fresh rows by {max(progress.gain, 0.0):.2g}"
    if progress.stopped:
        reason = STOPPED
    elif used_up:
        reason = f"max_iter={max_iter} iterations were used up; raise max_iter for a better fit"
    return OptimisationResult(np.zeros(0), value, len(history), converged, reason, progress.stopped, history)
