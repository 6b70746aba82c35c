"""A fit as a sequence of stages, each an L-BFGS run on some rows after an optional change of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    """Run the stages in turn; the verdict is the last one's, the history is all of theirs."""
    started, history = time.perf_counter(), History()
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
        if result.stopped:
            break
    return OptimisationResult(
        result.parameters, result.value, len(history), result.converged, result.reason, result.stopped, history
    )
