"""A random search with early stopping on held-out training rows, the same for all boosted trees. NumPy only.

Up to MANY_ROWS rows a candidate is judged by five folds, above by one of them. Its number of rounds is the best one on
the held-out rows (mean over folds) within at most an eighth of the seconds, so that several are judged at every size.
Where the best one was still gaining then, it is judged again with the seconds that are left, at least a quarter. The
candidate with the lowest held-out loss is fitted again to all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.protocol import Job, own_cpu_seconds

Array = NDArray[np.float64]
Settings = Mapping[str, float | int | str]
FOLDS, MANY_ROWS = 5, 5_000
MOST_ROUNDS, PATIENCE = 50_000, 50  # the seconds end training before so many rounds
MOST_OF_ONE, LAST = 1 / 8, 1 / 4  # of the seconds: what one candidate may take, and what is kept for the best of them
WORTH_STARTING = 0.05  # of the seconds: with less left, no further candidate begins


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

    def draw(self, rng: np.random.Generator, n: int) -> Settings: ...

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
    was_cut: bool  # by the deadline, on one of the folds


def folds(n: int, seed: int, most: int = FOLDS) -> list[tuple[Array, Array]]:
    """Rows to fit and rows held out, as index arrays."""
    parts = np.array_split(np.random.default_rng(seed).permutation(n), FOLDS)
    number = most if n <= MANY_ROWS else 1
    return [(np.concatenate([*parts[:i], *parts[i + 1 :]]), parts[i]) for i in range(number)]


def judge(learner: Learner, settings: Settings, job: Job, seconds: float, most_folds: int = FOLDS) -> Judged:
    """Fit with early stopping on each fold, which all have the same CPU seconds."""
    deadline, parts, found = Deadline(seconds), folds(len(job.y), job.seed, most_folds), []
    was_cut = False
    for number, (fit, held) in enumerate(parts):
        share = Deadline(deadline.left / (len(parts) - number))
        rows, others = Rows(job.X[fit], job.y[fit]), Rows(job.X[held], job.y[held])
        model = learner.train(settings, rows, others, MOST_ROUNDS, share)
        was_cut |= share.is_over
        found.append((model.rounds, held, model.predict(others.X)))
    rounds, held_rows, predictions = zip(*found, strict=True)
    held, prediction = np.concatenate(held_rows), np.concatenate(predictions)
    rows = Rows(job.X[held], job.y[held])
    loss = learner.loss(rows.y, prediction)
    return Judged(settings, loss, max(round(np.mean(rounds)), 1), rows, prediction, was_cut)


def search(learner: Learner, job: Job, seconds: float, most_folds: int = FOLDS) -> tuple[Judged, int]:
    """The best of the defaults and as many random candidates as the CPU seconds allow, and how many these were."""
    rng, deadline, number = np.random.default_rng(job.seed), Deadline(seconds), 1
    best = judge(learner, learner.defaults, job, MOST_OF_ONE * seconds, most_folds)
    while deadline.left > seconds * (LAST if best.was_cut else WORTH_STARTING):
        share = min(MOST_OF_ONE * seconds, deadline.left)
        judged = judge(learner, learner.draw(rng, len(job.y)), job, share, most_folds)
        best, number = min(best, judged, key=lambda each: each.loss), number + 1
    if best.was_cut and not deadline.is_over:
        again = judge(learner, best.settings, job, deadline.left, most_folds)
        best = min(best, again, key=lambda each: each.loss)
    return best, number


def learning_rates(n: int) -> tuple[float, float]:
    """Between which rates a search for n rows draws: many rows leave seconds for fewer rounds."""
    return (0.02, 0.2) if n <= MANY_ROWS else (0.03, 0.4)


def few_and_many_leaves(n: int) -> tuple[int, int]:
    """Between which numbers of leaves a search for n rows draws: 6 to 255, and above 12,000 rows more of both."""
    return max(6, n // 2_000), min(max(255, n // 50), 4_095)


def few_and_many_bins(n: int) -> tuple[int, int]:
    """Between which numbers of bins of a column: 255, which is usual, to 1,023, and above 51,000 rows more. On a map,
    255 of them end what trees can tell apart.
    """
    return 255, min(max(1_023, n // 50), 4_095)


def more_depth(n: int) -> int:
    """Levels that trees on n rows may have beyond those of small sets: one for each doubling above MANY_ROWS rows."""
    return max(0, round(math.log2(n / MANY_ROWS)))


def refit(learner: Learner, judged: Judged, job: Job) -> Trained:
    """The same settings and rounds on all rows."""
    return learner.train(judged.settings, Rows(job.X, job.y), None, judged.rounds, Deadline(None))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
