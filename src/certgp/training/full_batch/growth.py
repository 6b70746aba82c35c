r"""Hyper-parameters from subsets that grow, finished by a few evaluations on all rows.

The optimum theta_n of n random rows is about 1/sqrt(n) from that of all N, so a subset must only be so large that more
rows change nothing that matters. For that it must count for N rows: the objective of a subset is made of N / n times
its statistics. Its own would give too much weight to terms that do not grow with the rows (docs/decisions/0044).

Subsets are nested and each is four times the one before. Growing ends when a larger subset gained less than ``ENOUGH``
nats per row of its own objective over the optimum of the smaller one, and held-out rows, predicted from the larger
subset at both optima, differ by less than ``ENOUGH`` or twice their standard error.

The last steps see all rows. With the gradient g_N of all rows and g_n of the subset at theta_0, the surrogate

    f_n(theta) + (g_N - g_n)' (theta - theta_0)

has the right gradient there and the curvature of the subset; its minimiser, found on the subset alone, is closer to the
optimum of all rows by a factor of about 1/sqrt(n) (Jordan, Lee and Yang 2018, Communication-efficient distributed
statistical inference, eq. 6). Each round costs one evaluation on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, RowSource, draw_positions
from certgp.engines import Engine
from certgp.gp import LowRankModel
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.lbfgs import FAILED_VALUE, evaluate_logged, minimise
from certgp.training.full_batch.objective import LowRankObjective, Objective, ShiftedObjective
from certgp.training.history import STOPPED, Callback, History, Iteration, OptimisationResult, tell

FIRST_ROWS = 65_536
MOST_ROWS = 2 * FIRST_ROWS  # up to here every iteration sees all rows
ENOUGH = 1e-3  # nats per row
_FACTOR, _LARGEST_SHARE = 4, 10
_SUBSET_BYTES = 2**28
_HELD_OUT = 8_192
_ITERATIONS, _TOLERANCE = 25, 1e-5  # of a larger subset
_ROUNDS, _ROUND_ITERATIONS = 3, 15  # steps on all rows, and iterations on the subset in each
_PROMISE = 1e-4  # nats per row by which the surrogate must fall for a step to be worth an evaluation on all rows
_SUBSETS, _ALL_ROWS = "training on more rows", "step on all rows"  # stages

Array = NDArray[np.float64]
Losses = Callable[[RowSource, Chunk], Array]


@dataclass(frozen=True, eq=False)
class Search:
    """What an optimiser is told besides rows."""

    engine: Engine
    objective: str
    callbacks: Sequence[Callback]
    log: EvaluationLog | None
    max_iter: int


class Growth:
    """Nested random subsets of many rows, and rows held out from all of them."""

    def __init__(self, source: RowSource, dtype: torch.dtype, rng: np.random.Generator) -> None:
        self._source, self._dtype = source, dtype
        most = largest_subset(source.n_rows, source.n_columns)
        drawn = draw_positions(source.n_rows, most + _HELD_OUT, rng)
        self._held_out = source.take(np.sort(drawn[:_HELD_OUT])).to(torch.float64)
        self._order = drawn[_HELD_OUT:]
        self.rows: RowSource = self._subset(FIRST_ROWS)  # of the present subset

    def run(self, model: LowRankModel, losses: Losses, search: Search, after: OptimisationResult) -> OptimisationResult:
        """From the optimum of the first subset to that of all rows; ``losses`` are those of held-out rows given some
        others, at the present parameters of the model.
        """
        run = _Run(model, search, after.history)
        result = after
        while self._grow() and not result.stopped:
            objective = LowRankObjective(model, self.rows, search.engine, search.objective)
            start, before = objective.start(), losses(self.rows, self._held_out)
            value = evaluate_logged(objective, start, search.log)[0]
            result = run.minimise(objective, self.rows.n_rows, min(_ITERATIONS, search.max_iter), _TOLERANCE)
            if value - result.value < ENOUGH and _is_same(before, losses(self.rows, self._held_out)):
                break
        return result if result.stopped else self._finish(run)

    def _grow(self) -> bool:
        """Take more rows; False where all of them are the next step."""
        if _FACTOR * self.rows.n_rows > len(self._order):
            return False
        self.rows = self._subset(_FACTOR * self.rows.n_rows)
        return True

    def _subset(self, count: int) -> RowSource:
        found = self._source.copied(np.sort(self._order[:count]), self._dtype)
        found.stands_for = self._source.n_rows
        return found

    def _finish(self, run: _Run) -> OptimisationResult:
        """Steps with the gradient of all rows, until one gains next to nothing; the best point of all rows is kept."""
        search, n_rows = run.search, self._source.n_rows
        everything = LowRankObjective(run.model, self._source, search.engine, search.objective)
        some = LowRankObjective(run.model, self.rows, search.engine, search.objective)
        best, best_state, gain, stopped = FAILED_VALUE, run.model.snapshot(), np.inf, False
        for number in range(_ROUNDS + 1):
            here = everything.start()
            value, gradient = evaluate_logged(everything, here, search.log)
            stopped = run.record(value, gradient, n_rows)
            gain = best - value
            if value < best:
                best, best_state = value, run.model.snapshot()
            if gain < ENOUGH or stopped or number == _ROUNDS:
                break
            below, slope = evaluate_logged(some, here, search.log)
            shifted = ShiftedObjective(some, gradient - slope, here)
            step = run.minimise(shifted, self.rows.n_rows, min(_ROUND_ITERATIONS, search.max_iter), _TOLERANCE)
            gain, stopped = below - step.value, step.stopped
            if gain < _PROMISE or stopped:
                break
        run.model.restore(best_state)
        sizes = ", ".join(f"{stage.rows:,}" for stage in run.history.stages)
        reason = f"stages of {sizes} rows; the last step on all rows was worth {max(gain, 0.0):.1e} per row"
        return OptimisationResult(
            everything.start(),
            best,
            len(run.history),
            gain < ENOUGH and not stopped,
            STOPPED if stopped else reason,
            stopped,
            run.history,
        )


class _Run:
    """Optimiser runs that share a model and a history."""

    def __init__(self, model: LowRankModel, search: Search, history: History) -> None:
        self.model, self.search, self.history = model, search, history
        self._started = time.perf_counter() - (history[-1].seconds if len(history) else 0.0)

    def minimise(self, objective: Objective, rows: int, max_iter: int, tolerance: float) -> OptimisationResult:
        """One run; its history is that of all so far."""
        offset = len(self.history)
        found = minimise(
            objective,
            max_iter=max_iter,
            rank=self.model.rank,
            callbacks=self.search.callbacks,
            tolerance=tolerance,
            started=self._started,
            offset=offset,
            budget=offset + max_iter,
            log=self.search.log,
            rows=rows,
            stage=_SUBSETS,
        )
        self.history = self.history + found.history
        return replace(found, n_iter=len(self.history), history=self.history)

    def record(self, value: float, gradient: Array, rows: int) -> bool:
        """Tell the history and the callbacks of an evaluation; True where one of these stops the fit."""
        seconds = time.perf_counter() - self._started
        norm = float(np.linalg.norm(gradient))
        record = Iteration(len(self.history) + 1, value, norm, seconds, self.model.rank, rows=rows, stage=_ALL_ROWS)
        self.history = self.history + History((record,))
        return tell(self.search.callbacks, record)


def largest_subset(n_rows: int, n_columns: int) -> int:
    """Rows of the largest subset of so many rows: at most a tenth of them and 256 MiB, so that subsets cost less than
    the evaluations on all rows.
    """
    return max(FIRST_ROWS, min(n_rows // _LARGEST_SHARE, _SUBSET_BYTES // (8 * (n_columns + 1))))


def growth_rows(n_rows: int) -> float:
    """Rows that evaluations see beyond those of the first subset, about: one larger subset, two evaluations on all rows
    and the step between them on the subset, and the last pass.
    """
    larger = max(FIRST_ROWS, min(n_rows // _LARGEST_SHARE, _FACTOR * FIRST_ROWS))
    return 1.2 * (_ITERATIONS + _ROUND_ITERATIONS) * larger + 2.5 * n_rows


def _is_same(before: Array, after: Array) -> bool:
    """Do losses of the same rows differ by next to nothing, or by no more than chance?"""
    change = after - before
    error = float(change.std(ddof=1)) / np.sqrt(len(change))
    return bool(abs(change.mean()) < max(ENOUGH, 2.0 * error))
