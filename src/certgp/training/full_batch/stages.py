"""A fit as a sequence of stages, each an L-BFGS run on some rows after an optional change of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from certgp.data import RowSource
from certgp.engines import Engine
from certgp.gp import LowRankModel
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import LowRankObjective
from certgp.training.history import Callback, History, OptimisationResult


@dataclass(frozen=True, eq=False)
class Stage:
    """Prepare the model (choose its index set anew, say), then optimise on these rows.

    ``prepare`` may return False: there was nothing to change and no change is expected in the stages that follow on
    the same rows, so they become one run with this one.
    """

    source: RowSource
    max_iter: int
    prepare: Callable[[], bool | None] | None = None


def even_parts(total: int, parts: int) -> list[int]:
    """Iterations divided among runs as evenly as they can be; the later runs get what is over."""
    return [(total + i) // parts for i in range(parts)]


def run_stages(
    model: LowRankModel,
    stages: Sequence[Stage],
    engine: Engine,
    objective: str,
    callbacks: Sequence[Callback] = (),
    log: EvaluationLog | None = None,
    after: OptimisationResult | None = None,
    name: str = "training",
) -> OptimisationResult:
    """Run the stages in turn; the history is all of theirs, behind that of ``after``, the stages run before.

    Preparing a stage may cost more than its iterations win back (a new index set at the end, say), so of the stages on
    the last one's rows the best result is kept, with its verdict. ``name`` is what callbacks are told of them.
    """
    history = History() if after is None else after.history
    started = time.perf_counter() - (history.iterations[-1].seconds if len(history) else 0.0)
    budget = len(history) + sum(each.max_iter for each in stages)
    best: OptimisationResult | None = None
    best_state = model.snapshot()
    waiting = list(stages)
    while waiting:
        stage = waiting.pop(0)
        if stage.prepare is not None and stage.prepare() is False:
            while waiting and waiting[0].source is stage.source:
                stage = replace(stage, max_iter=stage.max_iter + waiting.pop(0).max_iter)
        target = LowRankObjective(model, stage.source, engine, objective)
        result = minimise(
            target,
            max_iter=stage.max_iter,
            rank=model.rank,
            callbacks=callbacks,
            started=started,
            offset=len(history),
            budget=budget,
            log=log,
            rows=stage.source.n_rows,
            stage=name,
        )
        history = history + result.history
        if stage.source is stages[-1].source and (best is None or result.value < best.value):
            best, best_state = result, model.snapshot()
        if result.stopped:
            return replace(result, n_iter=len(history), history=history)
    if best is None:
        raise ValueError("a fit needs at least one stage")
    model.restore(best_state)
    return replace(best, n_iter=len(history), history=history)
