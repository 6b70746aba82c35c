"""Training by a plan: several starts tried on a subsample, the best one trained in stages on all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, ChunkSource, RowSource, target_is_constant
from certgp.data.outputs import OutputSource
from certgp.engines import fold_feature_statistics
from certgp.engines.folds import fold_any_features
from certgp.errors import ConvergenceWarning, warn_user
from certgp.gp import LowRankModel, LowRankProcess
from certgp.gp.calibration import gaussian_log_density
from certgp.gp.outputs import OutputStatistics, profile_outputs
from certgp.gp.profile import profile_evidence
from certgp.training.evaluation_log import EvaluationLog, keep_if, open_log
from certgp.training.full_batch.growth import FIRST_ROWS, MOST_ROWS, Growth, Search, growth_rows
from certgp.training.full_batch.objective import LowRankObjective
from certgp.training.full_batch.speed import Speed, shortest
from certgp.training.full_batch.stages import Stage, run_stages
from certgp.training.full_batch.start import choose_starting_scale
from certgp.training.full_batch.trials import Candidate, Trial, TrialsResult, try_candidates
from certgp.training.history import OptimisationResult
from certgp.training.recipes.settings import DTYPES, Settings, Start
from certgp.training.recipes.trainer import Fit, OutputsFit, Trainer

_START_ROWS = 2_000
_TRIAL_ROWS = 4_000  # twice as many above 40,000 rows
_SECONDS, _SECONDS_PER_PRODUCT = 0.3, 4e-10  # about what a fit takes, and for an iteration, row and pair of features


@dataclass(frozen=True, eq=False)
class Plan:
    """A model at its starting values and the stages that train it; or several, to be tried before one is trained."""

    model: LowRankModel
    stages: Sequence[Stage]
    start: Start
    candidates: Sequence[Candidate] = ()

    @staticmethod
    def of(candidates: Sequence[Candidate], start: Start) -> Plan:
        """A plan that tries candidates."""
        return Plan(candidates[0].model, candidates[0].stages, start, candidates)


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A subsample on which starts are compared and good basins found cheaply, and rows held out from it."""

    learn: RowSource
    held_out: Chunk
    many: bool  # are there so many more rows that a subsample is worth training on?


@dataclass(frozen=True, eq=False)
class Job:
    """What a plan is made for."""

    settings: Settings
    source: RowSource  # standardised rows to learn from: all, or the first of subsets that grow
    rows: TrialRows
    rank: int
    rng: np.random.Generator
    n_rows: int  # of all

    def choose_length_scales(self, model: LowRankModel) -> None:
        """Look for length-scales at which the model explains something, unless the user gave them."""
        settings = self.settings
        if settings.lengths_are_given:
            return
        rows = ChunkSource(self.source.sample(_START_ROWS, self.rng))
        choose_starting_scale(model, rows, settings.engine, settings.objective)


class Recipe(ABC):
    """How one method builds its models and in which stages it trains them."""

    group: ClassVar[int] = 1  # features come in groups of this size

    def check(self, settings: Settings) -> None:
        """Refuse parameters that cannot work, before any data are looked at."""
        return

    def usable_rank(self, settings: Settings) -> int | None:
        """The rank, where something else than the parameter decides it."""
        return None

    @abstractmethod
    def plan(self, job: Job) -> Plan:
        """Build the models for standardised rows."""


class StagedTrainer(Trainer):
    """Follows the plan of a recipe."""

    shares_outputs: ClassVar[bool] = True
    only_folds: ClassVar[bool] = True

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        super().__init__(settings)
        recipe.check(settings)
        self.recipe = recipe
        self.group = recipe.group
        self._unfinished: Callable[[], LowRankProcess] | None = None

    def usable_rank(self, rank: object) -> int:
        decided = self.recipe.usable_rank(self.settings)
        return super().usable_rank(rank) if decided is None else decided

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        learn = self.settings.optimize and not target_is_constant(source)
        plan, outcome, trials = self._learn(source, rank, learn)
        return Fit(self.condition(plan, source, learn), outcome, trials, interrupted=outcome.stopped)

    def fit_outputs(self, source: OutputSource, settings: Sequence[Settings]) -> OutputsFit:
        """Features are learned from the outputs that vary; each output then has its own variances."""
        constant = source.constant_outputs()
        varying = [j for j in range(len(settings)) if j not in constant]
        learn = self.settings.optimize and bool(varying)
        rank = self.usable_rank(self.settings.rank)
        plan, outcome, trials = self._learn(source.with_outputs(varying) if varying else source, rank, learn)
        transform = plan.model.transform
        d = None if transform.keeps_coordinates else transform.dimension
        starts = [None if learn and j in varying else each.start(1.0, d) for j, each in enumerate(settings)]
        return OutputsFit(condition_outputs(plan, source, self.settings, starts), outcome, trials)

    def _learn(self, source: RowSource, rank: int, learn: bool) -> tuple[Plan, OptimisationResult, tuple[Trial, ...]]:
        """A plan whose model is trained on these rows, or as it starts."""
        rng = self.settings.new_generator()
        rows = self._split_trial_rows(source, rng)
        growth = self._growth(source, rng) if learn else None
        first = source if growth is None else growth.rows
        plan = self.recipe.plan(Job(self.settings, first, rows, rank, rng, source.n_rows))
        if not learn:
            return plan, OptimisationResult.none(), ()
        with open_log(self.settings.checkpoint, rank) as log:
            plan, tried = self.try_starts(plan, source, rows, log)
            outcome = self.train(plan, source, None if tried is None else tried.outcome, log, growth)
            keep_if(self.settings.put_off, log)
        return plan, outcome, () if tried is None else tried.trials

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        return _SECONDS + _SECONDS_PER_PRODUCT * self.rows_seen(n_rows) * rank**2

    def grows(self, n_rows: int) -> bool:
        """Are there so many rows that hyper-parameters are learned from subsets that grow?"""
        return self.settings.growing and n_rows > MOST_ROWS

    def rows_seen(self, n_rows: int) -> float:
        """Rows that the evaluations of a fit see in all, about: half of the iterations see a subsample; of many rows
        the others see one too, and a few see all.
        """
        grows = self.grows(n_rows)
        rows = 0.5 * ((FIRST_ROWS if grows else n_rows) + min(n_rows, 2 * _TRIAL_ROWS))
        return self.settings.max_iter * rows + (growth_rows(n_rows) if grows else 0.0)

    def measure(self, source: RowSource, rank: int) -> Speed:
        """Seconds per row, measured on these few rows at the start of a fit: the best of three runs."""
        rng, settings = self.settings.new_generator(), self.settings
        plan = self.recipe.plan(Job(settings, source, self._split_trial_rows(source, rng), rank, rng, source.n_rows))
        target = LowRankObjective(plan.model, source, settings.engine, settings.objective)
        start = target.start()
        fold = shortest(lambda: fold_feature_statistics(plan.model, source, settings.engine))
        return Speed(fold / source.n_rows, shortest(lambda: target.evaluate(start)) / source.n_rows)

    def process_so_far(self) -> LowRankProcess | None:
        return None if self._unfinished is None else self._unfinished()

    def try_starts(
        self, plan: Plan, source: RowSource, rows: TrialRows, log: EvaluationLog | None
    ) -> tuple[Plan, TrialsResult | None]:
        """The plan of the candidate that does best on rows held out from the trials. One without rivals has no trial:
        its first stages become part of the fit, on all rows where there are few.
        """
        if len(plan.candidates) == 1:
            (only,) = plan.candidates
            first = [stage for stages in only.rounds for stage in stages]
            first = first if rows.many else [replace(stage, source=source) for stage in first]
            return replace(plan, stages=[*first, *only.stages], candidates=()), None
        if not any(candidate.rounds for candidate in plan.candidates):  # too few iterations to try anything
            return replace(plan, candidates=()), None

        def begin(candidate: Candidate) -> None:
            self._unfinished = partial(self.condition, replace(plan, model=candidate.model), source)

        def score(model: LowRankModel) -> float:
            return float(self.held_out_losses(replace(plan, model=model), rows).mean())

        settings = self.settings
        result = try_candidates(
            plan.candidates,
            begin,
            score,
            settings.engine,
            settings.objective,
            settings.observers,
            log,
        )
        return Plan(result.best.model, result.best.stages, plan.start), result

    def held_out_losses(self, plan: Plan, rows: TrialRows) -> NDArray[np.float64]:
        """Negative log predictive density of each held-out target given the subsample."""
        return self._losses(plan, rows.learn, rows.held_out)

    def _losses(self, plan: Plan, given: RowSource, held_out: Chunk) -> NDArray[np.float64]:
        outputs = held_out.outputs()
        if held_out.y.ndim == 1:
            processes: Sequence[LowRankProcess] = [self.condition(plan, given)]
        else:
            processes = condition_outputs(plan, given, self.settings, [None] * len(outputs))
        losses = []
        for process, each in zip(processes, outputs, strict=True):
            mean, variance = process.moments(each.X)
            total = variance + each.noise(process.noise_variance)
            losses.append(-gaussian_log_density(each.y.numpy(), mean.numpy(), total.numpy()))
        return np.concatenate(losses)

    def train(
        self,
        plan: Plan,
        source: RowSource,
        after: OptimisationResult | None = None,
        log: EvaluationLog | None = None,
        growth: Growth | None = None,
    ) -> OptimisationResult:
        """Run the stages of a plan, after those of a trial where there was one, and before subsets that grow."""
        if after is not None and (after.stopped or not plan.stages):
            outcome = after
        else:
            self._unfinished = partial(self.condition, plan, source)
            outcome = run_plan(plan, self.settings, after, log)
        if growth is not None and not outcome.stopped:
            settings = self.settings
            search = Search(settings.engine, settings.objective, settings.observers, log, settings.max_iter)
            outcome = growth.run(plan.model, partial(self._losses, plan), search, outcome)
        self._unfinished = None
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        return outcome

    def condition(self, plan: Plan, source: RowSource, learn: bool = True) -> LowRankProcess:
        """The process at the present parameters of a plan's model, given all rows."""
        return condition(plan, source, self.settings, learn)

    def _growth(self, source: RowSource, rng: np.random.Generator) -> Growth | None:
        """Subsets that grow, where there are so many rows that these are worth it."""
        if not self.grows(source.n_rows):
            return None
        return Growth(source, DTYPES[self.settings.dtype], rng)

    def _split_trial_rows(self, source: RowSource, rng: np.random.Generator) -> TrialRows:
        """At most 4,000 rows (8,000 of many) to learn from and half as many to compare on; four fifths and one fifth
        where there are few.
        """
        size = _TRIAL_ROWS * (2 if source.n_rows > 40_000 else 1)
        held_out = max(1, min(size // 2, source.n_rows // 5))
        learned = max(1, min(size, source.n_rows - held_out))
        sample = source.sample(learned + held_out, rng)
        order = torch.from_numpy(rng.permutation(len(sample.y)))
        here, there = order[:learned].sort().values, order[learned:].sort().values
        learn = self.settings.convert_trial_rows(sample.pick(here))
        return TrialRows(learn, sample.pick(there), source.n_rows > 1.5 * size)


def condition(plan: Plan, source: RowSource, settings: Settings, learn: bool = True) -> LowRankProcess:
    """The process at the present parameters, with its own copy of them, given all rows; signal variance and noise are
    learned in closed form, or kept as they start.
    """
    model = deepcopy(plan.model).requires_grad_(False)
    stats = fold_feature_statistics(model, source, settings.engine)
    signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
    if learn:
        best = profile_evidence(stats, settings.objective)
        signal, noise = best.signal_variance, best.noise_variance
    return LowRankProcess(model, stats, signal, noise, settings.variance)


def condition_outputs(
    plan: Plan, source: RowSource, settings: Settings, starts: Sequence[Start | None]
) -> tuple[LowRankProcess, ...]:
    """The same of several outputs, over one copy of the features: each at its best variances, or at those of its start
    where there is one.
    """
    model = deepcopy(plan.model).requires_grad_(False)
    stats = fold_any_features(model, source, settings.engine)
    if not isinstance(stats, OutputStatistics):
        raise TypeError("rows of several outputs are expected")
    best = profile_outputs(stats, settings.objective).best
    variances = [
        (own.signal_variance, own.noise_variance)
        if start is None
        else (float(start.kernel.signal_variance), start.noise_variance)
        for own, start in zip(best, starts, strict=True)
    ]
    return tuple(
        LowRankProcess(model, stats.output(j), signal, noise, settings.variance)
        for j, (signal, noise) in enumerate(variances)
    )


def run_plan(
    plan: Plan, settings: Settings, after: OptimisationResult | None = None, log: EvaluationLog | None = None
) -> OptimisationResult:
    """Run the stages of a plan by L-BFGS."""
    engine, objective, observers = settings.engine, settings.objective, settings.observers
    return run_stages(plan.model, plan.stages, engine, objective, observers, log, after)
