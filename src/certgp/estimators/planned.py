"""How Mercer, Fourier, sparse and deep GPs are trained: planned, tried, run in stages, conditioned once on all rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_positive
from certgp.data import ArraySource, Chunk, ChunkSource, RowSource
from certgp.errors import ConvergenceWarning, InvalidInputError, warn_user
from certgp.estimators.automatic_rank import AUTOMATIC, fit_with_automatic_rank
from certgp.estimators.base import unoptimised
from certgp.estimators.low_rank import LowRankRegressor
from certgp.estimators.validation import (
    DTYPES,
    OBJECTIVES,
    VARIANCES,
    StartingValues,
    capped_rank,
    check_choice,
    check_count,
    check_engine,
    generator,
)
from certgp.gp import LowRankModel, LowRankProcess
from certgp.gp.calibration import gaussian_log_density
from certgp.gp.profile import profile_evidence
from certgp.kernels import Kernel
from certgp.training import (
    Candidate,
    EvaluationLog,
    OptimisationResult,
    Stage,
    TrialsResult,
    choose_starting_scale,
    run_stages,
    try_candidates,
)
from certgp.training.objective import fold_feature_statistics

_START_ROWS = 2_000
_WARM_ROWS = 4_000  # twice as many above 40,000 rows


@dataclass(frozen=True, eq=False)
class Plan:
    """A model at its starting values and the stages that train it; or several, to be tried before one is trained."""

    model: LowRankModel
    stages: Sequence[Stage]
    start: StartingValues
    candidates: Sequence[Candidate] = ()

    @staticmethod
    def of(candidates: Sequence[Candidate], start: StartingValues) -> Plan:
        """A plan that tries candidates."""
        return Plan(candidates[0].model, candidates[0].stages, start, candidates)


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A subsample on which starts are compared and good basins found cheaply, and rows held out from it."""

    learn: RowSource
    held_out: Chunk
    many: bool  # are there so many more rows that a subsample is worth training on?


class PlannedRegressor(LowRankRegressor):
    """A low-rank GP trained by a plan, which subclasses make (``_plan``)."""

    objective: str
    variance: str
    length_scale: float | Sequence[float] | None
    signal_variance: float | None
    noise_variance: float | None
    optimize: bool
    max_iter: int

    @abstractmethod
    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        """Build the model for standardised rows."""

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("variance", self.variance, VARIANCES)
        check_choice("dtype", self.dtype, tuple(DTYPES))
        check_count("max_iter", self.max_iter)
        if self.rank == AUTOMATIC:
            check_positive("tolerance", self.tolerance)
            check_count("max_rank", self.max_rank)
            if self.dtype == "float32":
                raise InvalidInputError(
                    "rank='auto' chooses the rank by a certificate, and float32 features leave rounding errors that no "
                    "certificate covers; use dtype='float64' or give a number as rank"
                )
        check_engine(self.engine)

    def _fit_process(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[LowRankProcess, OptimisationResult]:
        self._remember(X, y)
        if self.rank == AUTOMATIC:
            return fit_with_automatic_rank(self, X, y)
        return self._fit_at(self._source(X, y), self._usable_rank(X, self.rank))

    def _fit_at(self, source: ArraySource, rank: int) -> tuple[LowRankProcess, OptimisationResult]:
        """Train at one rank and condition on all rows."""
        rng = generator(self._seed())
        rows = self._trial_rows(source, rng)
        plan = self._plan(source, rows, rank, self.max_iter, rng)
        if not self.optimize or source.target_is_constant:
            return self._condition(plan, source, learn=False), unoptimised()
        with self._evaluation_log(rank) as log:
            plan, trials = self._tried(plan, source, rows, log)
            self.trials_ = () if trials is None else trials.trials
            outcome = self._train(plan, source, None if trials is None else trials.outcome, log)
        return self._condition(plan, source), outcome

    def _tried(
        self, plan: Plan, source: RowSource, rows: TrialRows, log: EvaluationLog | None, alone: bool = False
    ) -> tuple[Plan, TrialsResult | None]:
        """The plan of the candidate that does best on rows held out from the trials. One without rivals has no trial
        (unless it is to be tried ``alone``): its first stages become part of the fit, on all rows where there are few.
        """
        if len(plan.candidates) == 1 and not alone:
            (only,) = plan.candidates
            first = [stage for stages in only.rounds for stage in stages]
            first = first if rows.many else [replace(stage, source=source) for stage in first]
            return replace(plan, stages=[*first, *only.stages], candidates=()), None
        if not any(candidate.rounds for candidate in plan.candidates):  # too few iterations to try anything
            return replace(plan, candidates=()), None

        def begin(candidate: Candidate) -> None:
            self._unfinished = partial(self._condition, replace(plan, model=candidate.model), source)

        def score(model: LowRankModel) -> float:
            return float(self._held_out_losses(replace(plan, model=model), rows).mean())

        engine, observers = check_engine(self.engine), self._observers()
        result = try_candidates(plan.candidates, begin, score, engine, self.objective, observers, log)
        return Plan(result.best.model, result.best.stages, plan.start), result

    def _held_out_losses(self, plan: Plan, rows: TrialRows, source: RowSource | None = None) -> NDArray[np.float64]:
        """Negative log predictive density of each held-out row given the subsample, or another source."""
        process = self._condition(plan, rows.learn if source is None else source)
        mean, variance = process.moments(rows.held_out.X)
        total = variance + process.noise_variance
        return -gaussian_log_density(rows.held_out.y.numpy(), mean.numpy(), total.numpy())

    def _condition(self, plan: Plan, source: RowSource, learn: bool = True) -> LowRankProcess:
        """The process at the present parameters, with its own copy of them, given all rows."""
        model = deepcopy(plan.model).requires_grad_(False)
        stats = fold_feature_statistics(model, source, check_engine(self.engine))
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        if learn:
            best = profile_evidence(stats, self.objective)
            signal, noise = best.signal_variance, best.noise_variance
        return LowRankProcess(model, stats, signal, noise, self.variance)

    def _usable_rank(self, X: NDArray[np.floating], rank: object) -> int:
        """The rank asked for, as far as these rows can carry it."""
        return capped_rank(rank, X, self.cap_rank)

    def _starting_scale(self, model: LowRankModel, source: RowSource, rng: np.random.Generator) -> None:
        """Look for length-scales at which the model explains something, unless the user gave them."""
        if self.length_scale is not None or (isinstance(self.kernel, Kernel) and self.kernel.lengths_given):
            return
        rows = ChunkSource(source.sample(_START_ROWS, rng))
        choose_starting_scale(model, rows, check_engine(self.engine), self.objective)

    def _trial_rows(self, source: ArraySource, rng: np.random.Generator) -> TrialRows:
        """At most 4,000 rows (8,000 of many) to learn from and half as many to compare on; four fifths and one fifth
        where there are few.
        """
        size = _WARM_ROWS * (2 if source.n_rows > 40_000 else 1)
        held_out = max(1, min(size // 2, source.n_rows // 5))
        learned = max(1, min(size, source.n_rows - held_out))
        sample = source.sample(learned + held_out, rng)
        order = torch.from_numpy(rng.permutation(len(sample.y)))
        here, there = order[:learned].sort().values, order[learned:].sort().values
        learn = self._warm_up(Chunk(sample.X[here], sample.y[here]))
        return TrialRows(learn, Chunk(sample.X[there], sample.y[there]), source.n_rows > 1.5 * size)

    def _train(
        self,
        plan: Plan,
        source: RowSource,
        after: OptimisationResult | None = None,
        log: EvaluationLog | None = None,
        warn: bool = True,
    ) -> OptimisationResult:
        """Run the stages of a plan, after those of a trial where there was one."""
        if after is not None and (after.stopped or not plan.stages):
            outcome = after
        else:
            engine, observers = check_engine(self.engine), self._observers()
            self._unfinished = partial(self._condition, plan, source)
            outcome = run_stages(plan.model, plan.stages, engine, self.objective, observers, log, after)
        self._unfinished = None
        if warn and not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        return outcome
