"""A random search with early stopping on held-out training rows, the same for all boosted trees. NumPy only.

Up to MANY_ROWS rows a candidate is judged by five folds, above by one of them. Its number of rounds is the best one on
the held-out rows (mean over folds). The candidate with the lowest held-out loss is fitted again to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.protocol import Job, own_cpu_seconds

Array = NDArray[np.float64]
Settings = Mapping[str, float | int]
FOLDS, MANY_ROWS = 5, 5_000
MOST_ROUNDS, PATIENCE = 3_000, 50
WORTH_STARTING = 0.1  # of the budget: with less left, no further candidate begins


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs and targets."""

    X: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, cut to its best round on held-out rows where it had some."""

    predict: Callable[[Array], Array]
    rounds: int


class Deadline:
    """A moment on the CPU clock of this process; None never comes."""

    def __init__(self, seconds: float | None) -> None:
        self._end = np.inf if seconds is None else own_cpu_seconds() + seconds

    @property
    def left(self) -> float:
        return float(max(self._end - own_cpu_seconds(), 0.0))

    @property
    def is_over(self) -> bool:
        return self.left <= 0.0


class Learner(Protocol):
    """A boosting library."""

    defaults: Settings

    def draw(self, rng: np.random.Generator) -> Settings: ...

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained: ...

    def loss(self, y: Array, prediction: Array) -> float: ...


@dataclass(frozen=True, eq=False)
class Judged:
    """Settings, and what they gave on rows not fitted to."""

    settings: Settings
    loss: float
    rounds: int
    held: Rows  # of all folds
    prediction: Array  # at these


def folds(n: int, seed: int) -> list[tuple[Array, Array]]:
    """Rows to fit and rows held out, as index arrays."""
    parts = np.array_split(np.random.default_rng(seed).permutation(n), FOLDS)
    number = FOLDS if n <= MANY_ROWS else 1
    return [(np.concatenate([*parts[:i], *parts[i + 1 :]]), parts[i]) for i in range(number)]


def judge(learner: Learner, settings: Settings, job: Job, seconds: float) -> Judged:
    """Fit with early stopping on each fold, which all have the same CPU seconds."""
    deadline, parts, found = Deadline(seconds), folds(len(job.y), job.seed), []
    for number, (fit, held) in enumerate(parts):
        share = Deadline(deadline.left / (len(parts) - number))
        rows, others = Rows(job.X[fit], job.y[fit]), Rows(job.X[held], job.y[held])
        model = learner.train(settings, rows, others, MOST_ROUNDS, share)
        found.append((model.rounds, held, model.predict(others.X)))
    rounds, held_rows, predictions = zip(*found, strict=True)
    held, prediction = np.concatenate(held_rows), np.concatenate(predictions)
    rows = Rows(job.X[held], job.y[held])
    return Judged(settings, learner.loss(rows.y, prediction), max(round(np.mean(rounds)), 1), rows, prediction)


def search(learner: Learner, job: Job, seconds: float) -> tuple[Judged, int]:
    """The best of the defaults and as many random candidates as the CPU seconds allow, and how many these were."""
    rng, deadline, best, number = np.random.default_rng(job.seed), Deadline(seconds), None, 0
    while best is None or deadline.left > WORTH_STARTING * seconds:
        settings = learner.defaults if best is None else learner.draw(rng)
        judged, number = judge(learner, settings, job, deadline.left), number + 1
        if best is None or judged.loss < best.loss:
            best = judged
    return best, number


def refit(learner: Learner, judged: Judged, job: Job) -> Trained:
    """The same settings and rounds on all rows."""
    return learner.train(judged.settings, Rows(job.X, job.y), None, judged.rounds, Deadline(None))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
