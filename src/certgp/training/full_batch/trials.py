"""Several ways to start a fit, tried on a subsample; the best one goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certgp.engines import Engine
from certgp.gp import LowRankModel
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.stages import Stage, run_stages
from certgp.training.history import Callback, OptimisationResult


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model at its starting values, rounds of cheap stages by which it is judged, and the stages that follow."""

    name: str
    model: LowRankModel
    rounds: Sequence[Sequence[Stage]]
    stages: Sequence[Stage]


@dataclass(frozen=True)
class Trial:
    """What a start reached on the rows that all starts share."""

    name: str
    objective: float  # per row of the subsample; lower is better
    score: float  # on rows held out from it; lower is better
    seconds: float
    rows: int | None = None  # learned from, where that differs between trials
    seconds_again: float = 0.0  # of a training on all rows that followed, kept or not


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
    callbacks: Sequence[Callback] = (),
    log: EvaluationLog | None = None,
) -> TrialsResult:
    """Run the candidates, each announced by ``begin``, round by round; after each, the worse half drops out.

    The score is taken on rows that the trials do not see: objectives alone would favour candidates with more
    parameters (docs/decisions/0001). A callback that stops the fit ends the trials with the best so far.
    """
    field: list[_Standing] = [_Standing(candidate, None, None) for candidate in candidates]
    dropped: list[_Standing] = []
    for number in range(max(len(candidate.rounds) for candidate in candidates)):
        for place, standing in enumerate(field):
            if number >= len(standing.candidate.rounds):
                continue
            started = time.perf_counter()
            begin(standing.candidate)
            stages, model = standing.candidate.rounds[number], standing.candidate.model
            name = f"start {standing.candidate.name}"
            outcome = run_stages(model, stages, engine, objective, callbacks, log, standing.outcome, name)
            seconds = time.perf_counter() - started + (0.0 if standing.trial is None else standing.trial.seconds)
            trial = Trial(standing.candidate.name, outcome.value, score(model), seconds)
            field[place] = _Standing(standing.candidate, outcome, trial)
            if outcome.stopped:
                return _result([*field, *dropped])
        field.sort(key=_Standing.rank)
        field, out = field[: (len(field) + 1) // 2], field[(len(field) + 1) // 2 :]
        dropped = [*out, *dropped]
    return _result([*field, *dropped])


@dataclass(frozen=True, eq=False)
class _Standing:
    """A candidate and what it has reached so far."""

    candidate: Candidate
    outcome: OptimisationResult | None
    trial: Trial | None

    def rank(self) -> float:
        return math.inf if self.trial is None else self.trial.score


def _result(standings: list[_Standing]) -> TrialsResult:
    """The first of those that were tried goes on."""
    tried = [standing for standing in standings if standing.outcome is not None]
    trials = tuple(standing.trial for standing in tried if standing.trial is not None)
    if not tried or tried[0].outcome is None:
        raise ValueError("there must be a candidate to try")
    return TrialsResult(tried[0].candidate, tried[0].outcome, trials)
