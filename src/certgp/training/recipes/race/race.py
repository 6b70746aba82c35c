"""The race between methods: probes on subsamples, finals on all rows, and the best on held-out rows wins."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from certgp.checks import check_rank
from certgp.data import RowSource, target_is_constant
from certgp.errors import CertgpWarning, InvalidInputError, warn_user
from certgp.gp import GaussianProcess
from certgp.training.evaluation_log import open_log
from certgp.training.history import OptimisationResult
from certgp.training.noise import check_enough_rows
from certgp.training.recipes.race.clock import Clock
from certgp.training.recipes.race.contest import Contest
from certgp.training.recipes.race.entry import Entry
from certgp.training.recipes.race.finished import FinishedFits, open_finished
from certgp.training.recipes.race.stacking import stack
from certgp.training.recipes.race.standing import Standing, choose_winner
from certgp.training.recipes.race.terms import Terms
from certgp.training.recipes.race.words import explain, explain_stack, list_trials
from certgp.training.recipes.settings import Settings
from certgp.training.recipes.trainer import Fit, Trainer
from certgp.training.stopping import INTERRUPTED, OUT_OF_TIME, interrupted_outcome, with_cuts

_OTHERS_OUT_OF_TIME = "max_seconds left other methods less than they needed; a longer limit may give a better fit"
_FEWEST_ROWS = 50  # below, held-out rows say nothing


class Race(Trainer):
    """Trains several methods and keeps the one that predicts rows held out from the training rows best.

    Their own objectives do not tell which one that is: they are evidences of different models, or bounds of different
    tightness. Rows that none of them has seen do. The winner is then conditioned on these too.
    """

    learns_noise: ClassVar[bool] = True

    def __init__(self, entries: Sequence[Entry], settings: Settings, terms: Terms) -> None:
        super().__init__(settings)
        self._entries, self._terms = entries, terms
        for entry in entries:
            entry.build(entry.settings)  # refuses parameters that cannot work, before any data are looked at
        self._contest: Contest | None = None
        self._only: Trainer | None = None
        self._only_is_put_off = False

    def process_so_far(self) -> GaussianProcess | None:
        if self._only is not None:
            return self._only.process_so_far()
        return None if self._contest is None else self._contest.process_so_far()

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        if self.settings.wants_input_noise:
            check_enough_rows(source.n_rows)
        with open_finished(self.settings.checkpoint, self._is_put_off) as finished:
            field, clock = self._field(source), self._clock()
            if not _is_a_race(field, source):
                only = self._single(field)
                only = only.keeping_in(finished.part(only.name))
                return self._train_only(only, clock, lambda trainer: trainer.fit(source, only.rank), source)
            contest = self._contest = Contest(field, source, self.settings, self._terms, clock, finished)
            try:
                contest.probe()
                contest.run_finals()
                contest.check_somebody_can_win()
                return self._finish(contest, _rivals(contest))
            except KeyboardInterrupt:
                return self._finish_interrupted(contest)

    def settle(self, fit: Fit, source: RowSource) -> GaussianProcess:
        """As it is: held-out rows, or the only method, have settled it."""
        return fit.process

    def usable_rank(self, rank: object) -> int:
        """The rank asked for; each method looks at the rows for itself."""
        return check_rank(rank)

    def fit_automatically(self, source: RowSource, search: Callable[[Trainer], Fit]) -> Fit:
        """Compare the methods by probes at one rank, then let the winner find its own."""
        if self.settings.wants_input_noise:
            check_enough_rows(source.n_rows)
        with open_finished(self.settings.checkpoint, self._is_put_off) as finished:
            field, clock = self._field(source), self._clock()
            if not _is_a_race(field, source):
                return self._search(self._single(field), clock, search, source, finished)
            contest = self._contest = Contest(field, source, self.settings, self._terms, clock, finished)
            try:
                contest.probe()
            except KeyboardInterrupt:
                return self._finish_interrupted(contest)
            contest.check_somebody_can_win()
            winner = choose_winner(contest.eligible)
            trials = list_trials(contest, self._log_unit)
            choice = self._say(explain(contest, contest.eligible, winner, self._terms, self._log_unit))
            clock.announce(f"search for the rank of {winner.name}")
            try:
                found = self._search(winner.entry, clock, search, source, finished)
            except KeyboardInterrupt:
                found = self._stop_search(contest, winner, clock)
        return replace(found, trials=trials, choice=choice)

    def _stop_search(self, contest: Contest, winner: Standing, clock: Clock) -> Fit:
        """What the search for a rank has reached, or the winner of the probes; with a checkpoint it is to go on."""
        if self.settings.checkpoint is not None:
            raise KeyboardInterrupt
        clock.stopped = True
        warn_user("the fit was interrupted; this is the best model so far, and its rank is not proven to suffice")
        process = None if self._only is None else self._only.process_so_far()
        process = contest.settle(winner) if process is None else process
        return Fit(process, interrupted_outcome(), method=winner.name, interrupted=True)

    @property
    def _log_unit(self) -> float:
        """What to add to a mean negative log density of standardised targets to have it in the units of y."""
        return math.log(self.settings.standardiser.y_scale)

    def _is_put_off(self) -> bool:
        """Is there something left to do, which a checkpoint should keep the rest for?"""
        cut_short = self._contest is not None and self._contest.is_cut_short
        return cut_short or self._only_is_put_off or self.settings.put_off is not None

    def _clock(self) -> Clock:
        return Clock(self.settings.callbacks or (), self._terms.max_seconds)

    def _field(self, source: RowSource) -> list[Entry]:
        """The methods that make sense for so many rows; all, where none does."""
        field = [each for each in self._entries if each.suits(source.n_rows)] or list(self._entries)
        if self._terms.needs_proof and not any(each.can_be_certified for each in field):
            raise InvalidInputError(
                f"prefer='proof': of the candidates only {', '.join(each.name for each in field)} suit(s) "
                f"{source.n_rows:,} rows, and no distance to the exact GP can be proven for it; add 'local', 'sparse' "
                "or 'mercer' to candidates"
            )
        return field

    def _single(self, field: Sequence[Entry]) -> Entry:
        """The method that is trained where there is no race: the first, of those that may win."""
        return next(each for each in field if each.can_be_certified or not self._terms.needs_proof)

    def _search(
        self, entry: Entry, clock: Clock, search: Callable[[Trainer], Fit], source: RowSource, finished: FinishedFits
    ) -> Fit:
        """One method at several ranks, whose evaluations share a file."""
        part = finished.part(f"{entry.name}:ranks")
        with open_log(part, 0) as log:
            kept = entry.keeping_in(None if part is None else replace(part, opened=log))
            return self._train_only(kept, clock, search, source)

    def _train_only(self, entry: Entry, clock: Clock, train: Callable[[Trainer], Fit], source: RowSource) -> Fit:
        limit = clock.limit()
        trainer = self._only = entry.trainer(clock, limit=limit)
        if limit is not None:
            limit.reserve(trainer.seconds_after_training(source.n_rows, source.n_columns), trainer.most_reserved)
        fit = train(trainer)
        put_off = trainer.settings.put_off  # training; what confirms it has nothing to go on with
        self._only_is_put_off = put_off is not None
        fit = replace(fit, process=trainer.settle(fit, source))
        if fit.outcome.stopped and put_off is not None:
            fit = replace(fit, outcome=replace(fit.outcome, reason=put_off))
        fit = replace(fit, outcome=with_cuts(fit.outcome, {} if limit is None else limit.cuts))
        choice = f"{entry.name}: there was nothing to choose from or too few rows to compare."
        return replace(fit, trials=(), method=entry.name, choice=self._say(choice))

    def _finish_interrupted(self, contest: Contest) -> Fit:
        """The best model so far, where there is one; with a checkpoint the fit is to go on later instead."""
        contest.give_up()
        if self.settings.checkpoint is None:
            contest.rescue()
        eligible = contest.eligible
        if self.settings.checkpoint is not None or not eligible:
            raise KeyboardInterrupt
        fit = self._finish(contest, eligible)
        warn_user(f"the fit was interrupted; this is the best model so far. {fit.choice}")
        outcome = replace(fit.outcome, converged=False, stopped=True, reason=INTERRUPTED)
        return replace(fit, outcome=outcome, interrupted=True)

    def _finish(self, contest: Contest, rivals: Sequence[Standing]) -> Fit:
        winner = choose_winner(rivals)
        for each in winner.warnings if winner.is_final else ():
            if isinstance(each, CertgpWarning):
                warn_user(str(each), type(each))
            else:
                warnings.warn(each, stacklevel=2)
        combined = self._terms.combine and len(rivals) > 1
        found = stack(rivals, winner, self.settings.new_generator()) if combined else None
        taken = found if found is not None and found.pays else None
        process = contest.settle(winner) if taken is None else taken.complete(contest)
        name = winner.name if taken is None else taken.name
        choice = explain(contest, rivals, winner, self._terms, self._log_unit)
        choice = self._say(choice if found is None else explain_stack(found, winner, choice))
        trials, outcome = list_trials(contest, self._log_unit), _outcome(contest, winner)
        return Fit(process, outcome, trials, name, choice, outcome.stopped)

    def _say(self, choice: str) -> str:
        if self.settings.verbose:
            print(choice)
        return choice


def _outcome(contest: Contest, winner: Standing) -> OptimisationResult:
    """That of the winner, with what the time limit did to it and to the race."""
    outcome = winner.fit.outcome
    if contest.is_cut_short and not contest.is_over:
        if outcome.stopped or not winner.is_final:
            outcome = replace(outcome, reason=OUT_OF_TIME, stopped=True, converged=False)
        else:
            outcome = replace(outcome, reason=f"{outcome.reason}; {_OTHERS_OUT_OF_TIME}")
    return with_cuts(outcome, {**winner.cuts, **contest.cuts})


def _is_a_race(field: Sequence[Entry], source: RowSource) -> bool:
    return len(field) > 1 and source.n_rows >= _FEWEST_ROWS and not target_is_constant(source)


def _rivals(contest: Contest) -> list[Standing]:
    """The finalists; all where the race was cut short, and a final may be worse than a probe of another method."""
    whole = [each for each in contest.finals if not each.fit.outcome.stopped]
    return contest.finals if whole and len(whole) == len(contest.finals) else contest.eligible
