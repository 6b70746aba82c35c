"""A fit as a sequence of stages, each an L-BFGS run on some rows after an optional change of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from certgp.data import RowSource
from certgp.engines import Engine
from certgp.gp import LowRankModel, NoiseRatioBounds
from certgp.training.history import Callback, History
from certgp.training.lbfgs import OptimisationResult, minimise
from certgp.training.objective import LowRankObjective


@dataclass(frozen=True, eq=False)
class Stage:
    """Prepare the model (choose its index set anew, say), then optimise on these rows."""

    source: RowSource
    max_iter: int
    prepare: Callable[[], None] | None = None


def run_stages(
    model: LowRankModel,
    stages: Sequence[Stage],
    engine: Engine,
    objective: str,
    noise_bounds: NoiseRatioBounds,
    callbacks: Sequence[Callback] = (),
) -> OptimisationResult:
    """Run the stages in turn; the history is all of theirs.

    Preparing a stage may cost more than its iterations win back (a new index set at the end, say), so of the stages on
    the last one's rows the best result is kept, with its verdict.
    """
    started, history = time.perf_counter(), History()
    best: OptimisationResult | None = None
    best_state = model.snapshot()
    for stage in stages:
        if stage.prepare is not None:
            stage.prepare()
        target = LowRankObjective(model, stage.source, engine, objective, noise_bounds)
        result = minimise(
            target,
            max_iter=stage.max_iter,
            rank=model.rank,
            callbacks=callbacks,
            started=started,
            offset=len(history),
            budget=sum(each.max_iter for each in stages),
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
