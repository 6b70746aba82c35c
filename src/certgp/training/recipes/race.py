"""The race between methods: all are trained on a subsample, and the one that predicts held-out rows best wins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_rank
from certgp.data import RowSource, SubsetSource, target_is_constant
from certgp.gp import GaussianProcess
from certgp.training.evaluation_log import EvaluationLog, open_log
from certgp.training.full_batch.stages import Stage
from certgp.training.full_batch.trials import Trial
from certgp.training.history import OptimisationResult
from certgp.training.recipes.settings import Settings
from certgp.training.recipes.staged import Job, Plan, StagedTrainer, TrialRows
from certgp.training.recipes.trainer import Fit, Trainer

# Why all methods go on to all rows, and how long: docs/decisions/0007
_PRICE_OF_PROOF = 0.01  # in held-out NLPD: what a method that can certify itself may cost
_SHARES = (0.25, 0.4, 1.0)  # of what is left of the iterations on all rows, for those still in the race
_LAST_SHARE = 0.15  # of the winner's iterations, on all rows at the end
_HELD_OUT = 3_000
_SUBSAMPLE_SHARE, _LEAST_SUBSAMPLE, _MOST_SUBSAMPLE = 4, 4_000, 8_000
_FEWEST_ROWS = 50  # below, held-out rows say nothing
_TRIAL_RANK = 100  # at which methods are compared where the rank is to be found


@dataclass(frozen=True, eq=False)
class Entry:
    """A method that takes part."""

    trainer: StagedTrainer
    certifies_itself: bool  # from its own statistics, at no cost


@dataclass(frozen=True, eq=False)
class _Contender:
    """A method in the race: its trainer, its plan, what its training reached so far."""

    name: str
    trainer: StagedTrainer
    certifies_itself: bool
    plan: Plan
    outcome: OptimisationResult
    trial: Trial
    losses: NDArray[np.float64]  # of the held-out rows; their mean is the trial's score


@dataclass(frozen=True, eq=False)
class _Result:
    """The winner, and what to say about the race."""

    winner: _Contender
    trials: tuple[Trial, ...]
    choice: str


class Race(Trainer):
    """Trains several methods and goes on with the one that predicts rows held out from the training rows best.

    Their own objectives do not tell which one that is: they are evidences of different models, or bounds of different
    tightness. Rows that none of them has seen do.
    """

    def __init__(self, entries: Mapping[str, Entry], settings: Settings) -> None:
        super().__init__(settings)
        self._entries = entries
        self._active: Trainer | None = None

    def process_so_far(self) -> GaussianProcess | None:
        return None if self._active is None else self._active.process_so_far()

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        if not self._is_a_race(source):
            trainer = self._activate_only_trainer()
            return self._note_no_race(trainer.fit(source, rank))
        with open_log(self.settings.checkpoint, 0) as log:
            result = self._run(source, rank, log)
            winner = result.winner
            self._active = winner.trainer
            last = Stage(source, max(1, round(_LAST_SHARE * winner.trainer.settings.max_iter)))  # with held-out rows
            plan = replace(winner.plan, stages=[*winner.plan.stages, last])
            outcome = winner.trainer.train(plan, source, winner.outcome, log)
        return Fit(winner.trainer.condition(plan, source), outcome, result.trials, winner.name, result.choice)

    def usable_rank(self, rank: object) -> int:
        """The rank asked for; each method looks at the rows for itself."""
        return check_rank(rank)

    def fit_automatically(self, source: RowSource, search: Callable[[Trainer], Fit]) -> Fit:
        """Compare the methods at one rank, then let the winner find its own."""
        if not self._is_a_race(source):
            return self._note_no_race(search(self._activate_only_trainer()))
        with open_log(self.settings.checkpoint, 0) as log:
            result = self._run(source, min(_TRIAL_RANK, self.settings.max_rank), log)
            self._active = result.winner.trainer
            found = search(result.winner.trainer)
        return replace(found, trials=result.trials, method=result.winner.name, choice=result.choice)

    def _is_a_race(self, source: RowSource) -> bool:
        return len(self._entries) > 1 and source.n_rows >= _FEWEST_ROWS and not target_is_constant(source)

    def _activate_only_trainer(self) -> StagedTrainer:
        self._active = trainer = next(iter(self._entries.values())).trainer
        return trainer

    def _note_no_race(self, fit: Fit) -> Fit:
        name = next(iter(self._entries))
        choice = f"{name}: there was nothing to choose from or too few rows to compare"
        return replace(fit, trials=(), method=name, choice=self._say(choice))

    def _say(self, choice: str) -> str:
        if self.settings.verbose:
            print(choice)
        return choice

    def _run(self, source: RowSource, rank: int, log: EvaluationLog | None) -> _Result:
        """All are trained on a subsample, then further on all rows but the held-out ones, since some methods gain more
        from many rows and iterations than others. A method leaves the race when it is behind and another gain like its
        last one would not bring it to the front.
        """
        rng = self.settings.new_generator()
        rows, learned = self._split_rows(source, rng)
        ranks = {name: each.trainer.usable_rank(rank) for name, each in self._entries.items()}
        field = [self._enter(name, ranks[name], learned, rows, rng, log) for name in self._entries]
        finalists = field
        latest = {contender.name: contender for contender in field}
        for share in _SHARES:
            further = [self._train_further(each, rows, learned, share, log) for each in finalists]
            latest |= {contender.name: contender for contender in further}
            finalists = _keep_promising(finalists, further)
            if len(finalists) == 1:
                break
        winner = _choose_winner(finalists)
        choice = self._say(_explain_choice(winner, _sort_by_score(finalists)[0], latest, rows))
        return _Result(winner, _collect_trials(latest.values()), choice)

    def _enter(
        self,
        name: str,
        rank: int,
        source: RowSource,
        rows: TrialRows,
        rng: np.random.Generator,
        log: EvaluationLog | None,
    ) -> _Contender:
        entry = self._entries[name]
        trainer = entry.trainer
        started, self._active = time.perf_counter(), trainer
        plan = trainer.recipe.plan(Job(trainer.settings, source, rows, rank, rng))
        plan, result = trainer.try_starts(plan, source, rows, log, alone=True)
        outcome = OptimisationResult.none() if result is None else result.outcome
        losses = trainer.held_out_losses(plan, rows)
        trial = Trial(name, outcome.value, float(losses.mean()), time.perf_counter() - started)
        return _Contender(name, trainer, entry.certifies_itself, plan, outcome, trial, losses)

    def _train_further(
        self, contender: _Contender, rows: TrialRows, source: RowSource, share: float, log: EvaluationLog | None
    ) -> _Contender:
        """The next stages, as far as they are on this source, for a share of their iterations; and the score they lead
        to.
        """
        started = time.perf_counter()
        stages, later = _divide(contender.plan.stages, source, share)
        if not stages or contender.outcome.stopped:
            return contender
        trainer, plan = contender.trainer, replace(contender.plan, stages=stages)
        self._active = trainer
        outcome = trainer.train(plan, source, contender.outcome, log, warn=False)
        losses = trainer.held_out_losses(plan, rows, source)
        seconds = contender.trial.seconds + time.perf_counter() - started
        trial = Trial(contender.name, outcome.value, float(losses.mean()), seconds)
        return replace(contender, outcome=outcome, trial=trial, losses=losses, plan=replace(plan, stages=later))

    def _split_rows(self, source: RowSource, rng: np.random.Generator) -> tuple[TrialRows, SubsetSource]:
        """The subsample and the held-out rows, and a source of all rows but the latter."""
        held_out = np.sort(rng.permutation(source.n_rows)[: max(1, min(_HELD_OUT, source.n_rows // 5))])
        learned = SubsetSource(source, np.setdiff1d(np.arange(source.n_rows), held_out))
        size = int(np.clip(source.n_rows // _SUBSAMPLE_SHARE, min(_LEAST_SUBSAMPLE, learned.n_rows), _MOST_SUBSAMPLE))
        held = source.take(held_out).to(torch.float64)
        return TrialRows(self.settings.convert_trial_rows(learned.sample(size, rng)), held, many=True), learned


def _sort_by_score(contenders: Sequence[_Contender]) -> list[_Contender]:
    return sorted(contenders, key=lambda contender: contender.trial.score)


def _find_ties(contenders: Sequence[_Contender]) -> list[_Contender]:
    """The best and those whose mean loss exceeds its by no more than the standard error of the difference: below that,
    rounding would decide.
    """
    ranked = _sort_by_score(contenders)
    return [each for each in ranked if _is_as_good(each.losses - ranked[0].losses)]


def _keep_promising(before: Sequence[_Contender], after: Sequence[_Contender]) -> list[_Contender]:
    """Those as good as the best, and those whose last gain, if repeated, would bring them to the front."""
    front = _sort_by_score(after)[0].trial.score
    tied = _find_ties(after)
    gains = [old.trial.score - new.trial.score for old, new in zip(before, after, strict=True)]
    return [new for new, gain in zip(after, gains, strict=True) if new in tied or new.trial.score - gain <= front]


def _choose_winner(finalists: Sequence[_Contender]) -> _Contender:
    """The best, or a method that can certify itself where held-out rows cannot tell it from the best and the price, as
    far as they know it, is small.
    """
    tied = _find_ties(finalists)
    dearest = tied[0].trial.score + _PRICE_OF_PROOF
    return next((each for each in tied if each.certifies_itself and each.trial.score <= dearest), tied[0])


def _collect_trials(contenders: Iterable[_Contender]) -> tuple[Trial, ...]:
    return tuple(each.trial for each in _sort_by_score(list(contenders)))


def _is_as_good(differences: NDArray[np.float64]) -> bool:
    return bool(differences.mean() <= differences.std() / np.sqrt(len(differences)))


def _divide(stages: Sequence[Stage], source: RowSource, share: float) -> tuple[list[Stage], list[Stage]]:
    """The leading stages on a source, up to a share of their iterations, and what remains of all stages.

    A stage that begins with a change of the model (a new index set) is not cut, though it exceeds the share: an
    optimiser that starts anew in its middle ends far behind (docs/decisions/0008).
    """
    leading = list(takewhile(lambda stage: stage.source is source, stages))
    budget = round(share * sum(stage.max_iter for stage in leading))
    now: list[Stage] = []
    later = list(stages)
    while later and budget > 0 and later[0].source is source:
        stage = later.pop(0)
        length = stage.max_iter if stage.prepare is not None else min(budget, stage.max_iter)
        now.append(replace(stage, max_iter=length))
        if stage.max_iter > length:
            later.insert(0, Stage(source, stage.max_iter - length))
        budget -= length
    return now, later


def _explain_choice(winner: _Contender, best: _Contender, latest: Mapping[str, _Contender], rows: TrialRows) -> str:
    scores = ", ".join(f"{trial.name} {trial.score:.4g}" for trial in _collect_trials(latest.values()))
    why = (
        "lowest mean negative log predictive density"
        if winner is best
        else f"it can be certified, and {best.name} is not better by more than the standard error of the difference"
    )
    return (
        f"{winner.name}: {why} on {len(rows.held_out.y)} rows held out from the training rows "
        f"(standardised units: {scores})"
    )
