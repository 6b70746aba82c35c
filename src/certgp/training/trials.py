"""Several ways to start a fit, tried on a subsample; the best one goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certgp.engines import Engine
from certgp.gp import LowRankModel, NoiseRatioBounds
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.history import Callback
from certgp.training.lbfgs import OptimisationResult
from certgp.training.schedule import Stage, run_stages


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model at its starting values, the cheap stages by which it is judged, and those that train it further."""

    name: str
    model: LowRankModel
    trial: Sequence[Stage]
    stages: Sequence[Stage]


@dataclass(frozen=True)
class Trial:
    """What a start reached on the rows that all starts share."""

    name: str
    objective: float  # per row of the subsample; lower is better
    score: float  # on rows held out from it; lower is better
    seconds: float


@dataclass(frozen=True, eq=False)
class TrialsResult:
    """The candidate that goes on, what it reached, and what all of them reached."""

    best: Candidate
    outcome: OptimisationResult
    trials: tuple[Trial, ...]


def try_candidates(
    candidates: Sequence[Candidate],
    begin: Callable[[Candidate], None],
    score: Callable[[LowRankModel], float],
    engine: Engine,
    objective: str,
    noise_bounds: NoiseRatioBounds,
    callbacks: Sequence[Callback] = (),
    log: EvaluationLog | None = None,
) -> TrialsResult:
    """Run the trial stages of every candidate, each announced by ``begin``, and keep the one with the lowest score.

    The score is taken on rows that the trials do not see: objectives alone would favour candidates with more
    parameters (measured: docs/benchmarks.md). A callback that stops the fit ends the trials with the best so far.
    """
    best: tuple[Candidate, OptimisationResult] | None = None
    trials: list[Trial] = []
    for candidate in candidates:
        started = time.perf_counter()
        begin(candidate)
        outcome = run_stages(candidate.model, candidate.trial, engine, objective, noise_bounds, callbacks, log)
        trial = Trial(candidate.name, outcome.value, score(candidate.model), time.perf_counter() - started)
        if best is None or trial.score < min(each.score for each in trials):
            best = (candidate, outcome)
        trials.append(trial)
        if outcome.stopped:
            break
    if best is None:
        raise ValueError("there must be a candidate to try")
    return TrialsResult(*best, tuple(trials))
