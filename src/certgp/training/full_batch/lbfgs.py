"""L-BFGS on bounded parameters, with a history and an honest account of why it stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from certgp.errors import NotPositiveDefiniteError
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.objective import Objective
from certgp.training.history import STOPPED, Callback, History, Iteration, OptimisationResult, tell
from certgp.training.parameters import Array

_SMALL_GRADIENT = 1e-2  # per row and unit of a log parameter: where no better point is found, this much is called flat
_WINDOW = 5  # iterations that must gain little on average: a single short step is no sign of an optimum
_NOTHING = 1e-3  # of the tolerance: a single iteration that gains less than this ends the run too
FAILED_VALUE = 1e10  # a point that cannot be evaluated: worse than any other, so the line search turns back


class _Recorder:
    """Remembers the last evaluation, so that the history needs no extra one."""

    def __init__(
        self,
        objective: Objective,
        callbacks: Sequence[Callback],
        rank: int,
        started: float,
        offset: int,
        tolerance: float,
        log: EvaluationLog | None,
        rows: int | None,
        stage: str,
        most: int,
    ) -> None:
        self.rows, self.stage, self.most = rows, stage, most
        self.best: Array | None = None  # the last point that was accepted: each is better than the one before
        self.objective, self.callbacks, self.rank, self.log = objective, callbacks, rank, log
        self.started, self.offset, self.tolerance = started, offset, tolerance
        self.iterations: list[Iteration] = []
        self.stopped_by_callback = False
        self.settled = False
        self._run_begins = 0
        self._last: dict[bytes, float] = {}

    def evaluate(self, values: Array) -> tuple[float, Array]:
        value, gradient = evaluate_logged(self.objective, values, self.log)
        self._last = {values.tobytes(): float(np.linalg.norm(gradient))}
        return value, gradient

    def __call__(self, intermediate_result: OptimizeResult) -> None:
        norm = self._last.get(np.asarray(intermediate_result.x).tobytes(), float("nan"))
        record = Iteration(
            self.offset + len(self.iterations) + 1,
            float(intermediate_result.fun),
            norm,
            time.perf_counter() - self.started,
            self.rank,
            rows=self.rows,
            stage=self.stage,
            most=self.most,
        )
        self.iterations.append(record)
        self.best = np.array(intermediate_result.x)
        if tell(self.callbacks, record):
            self.stopped_by_callback = True
            raise StopIteration
        if self._gains_little():
            self.settled = True
            raise StopIteration

    def begin_anew(self) -> None:
        """A run of the optimiser follows: what the one before gained says nothing about it."""
        self.settled, self._run_begins = False, len(self.iterations)

    def _gains_little(self) -> bool:
        """Did the last iterations gain less than the tolerance on average?"""
        if len(self.iterations) - self._run_begins <= _WINDOW:
            return False
        before, now = self.iterations[-1 - _WINDOW].value, self.iterations[-1].value
        return before - now < _WINDOW * self.tolerance * max(abs(before), 1.0)


def evaluate_logged(objective: Objective, values: Array, log: EvaluationLog | None) -> tuple[float, Array]:
    """Value and gradient at some parameters, replayed from a log or recorded in it; where the objective cannot be
    evaluated, a value that is worse than any other (``FAILED_VALUE``).
    """
    known = None if log is None else log.recall(values)
    if known is not None:
        return known
    try:
        value, gradient = objective.evaluate(values)
    except NotPositiveDefiniteError:
        value, gradient = FAILED_VALUE, np.zeros_like(values)
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        value, gradient = FAILED_VALUE, np.zeros_like(values)
    if log is not None:
        log.record(values, value, gradient)
    return value, gradient


def minimise(
    objective: Objective,
    *,
    max_iter: int,
    rank: int,
    callbacks: Sequence[Callback] = (),
    tolerance: float = 1e-6,
    gradient_tolerance: float = 1e-5,
    started: float | None = None,
    offset: int = 0,
    budget: int | None = None,
    log: EvaluationLog | None = None,
    rows: int | None = None,
    stage: str = "training",
) -> OptimisationResult:
    """Minimise from the objective's current parameters; its parameters are set to the best point found.

    ``budget`` is the number of iterations the user allowed, where this run is one of several that share it; ``log``
    replays and records evaluations, ``rows`` and ``stage`` tell the history what an evaluation sees and what it is for.
    An interrupt leaves the objective at the best point so far. The run ends where the last
    five iterations gained less than ``tolerance`` per row on average (relative to a value above one), or where no entry
    of the projected gradient exceeds ``gradient_tolerance``. Where little is gained, an objective that can be sharpened
    is, and the run goes on.
    """
    start = np.clip(objective.start(), *np.array(objective.bounds()).reshape(-1, 2).T)
    clock = time.perf_counter() if started is None else started
    most = int(budget or offset + max_iter)  # a NumPy integer would not go into a file
    recorder = _Recorder(objective, callbacks, rank, clock, offset, tolerance, log, rows, stage, most)
    # SciPy's own rule looks at one iteration: it is left to catch steps that gain next to nothing
    options = {"maxcor": 50, "ftol": _NOTHING * tolerance, "gtol": gradient_tolerance, "maxls": 25}

    def run(values: Array, iterations: int) -> OptimizeResult:
        recorder.begin_anew()
        try:
            return minimize(
                recorder.evaluate,
                values,
                jac=True,
                method="L-BFGS-B",
                bounds=objective.bounds(),
                callback=recorder,
                options=options | {"maxiter": iterations},
            )
        except KeyboardInterrupt:  # amid a line search, whose points are worse than the one it began at
            objective.move_to(start if recorder.best is None else recorder.best)
            raise

    result = run(start, max_iter)
    little = recorder.settled or _is_stuck(result) or "REDUCTION OF F" in str(result.message)
    if little and len(recorder.iterations) < max_iter and objective.sharpen():
        result = run(result.x, max_iter - len(recorder.iterations))
    flat = _is_stuck(result)
    # a fresh start takes another first step where a parameter is unbounded; where all are bounded it repeats itself
    if flat and len(recorder.iterations) < max_iter and not np.isfinite(objective.bounds()).all():
        again = run(result.x, max_iter - len(recorder.iterations))
        flat = _is_stuck(again) and result.fun - again.fun < tolerance
        result = again
    objective.move_to(result.x)
    value = float(result.fun)
    if value >= FAILED_VALUE:
        objective.evaluate(result.x)  # where there is an error to show, this shows it
        reason = "the objective is not a finite number where the fit starts; give other starting values"
        return OptimisationResult(result.x, float("nan"), 0, False, reason, False, History())
    converged, reason = _verdict(result, recorder, max_iter, budget or max_iter, tolerance, flat)
    history = History(tuple(recorder.iterations))
    return OptimisationResult(result.x, value, len(history), converged, reason, recorder.stopped_by_callback, history)


def _is_stuck(result: OptimizeResult) -> bool:
    """Did the line search find no better point?"""
    return "ABNORMAL" in str(result.message)


def _verdict(
    result: OptimizeResult, recorder: _Recorder, max_iter: int, budget: int, tolerance: float, flat: bool
) -> tuple[bool, str]:
    message = str(result.message)
    if recorder.stopped_by_callback:
        return False, STOPPED
    if result.status == 1:
        share = "" if recorder.offset + len(recorder.iterations) >= budget else f"the {max_iter} of this run, of "
        return False, f"{share}max_iter={budget} iterations were used up; raise max_iter for a better fit"
    norm = float(np.linalg.norm(result.jac))
    if flat and norm <= _SMALL_GRADIENT:
        return True, f"no better point is found: the objective is flat here to rounding (gradient {norm:.1e})"
    if _is_stuck(result):
        return False, f"the line search found no better point: the objective is rough here (gradient {norm:.1e})"
    if "PROJECTED GRADIENT" in message or "PGTOL" in message:
        return True, "the gradient vanished"
    return True, f"the last iterations improved the objective by less than {tolerance:g} per row (gradient {norm:.1e})"
