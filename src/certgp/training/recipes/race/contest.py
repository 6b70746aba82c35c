"""One race: probes on subsamples, finals on all rows but the held-out ones."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import ChunkSource, RowSource, SubsetSource
from certgp.data.sources import KEPT_BYTES
from certgp.errors import CertgpError, CertgpWarning, CheckpointError, InvalidInputError, NotPositiveDefiniteError
from certgp.gp import GaussianProcess
from certgp.gp.kinds import SingleProcess
from certgp.training.conditioning import condition_further
from certgp.training.noise import add_noise_model
from certgp.training.recipes.race.clock import Clock
from certgp.training.recipes.race.entry import Entry
from certgp.training.recipes.race.finished import FinishedFits
from certgp.training.recipes.race.rows import split_rows
from certgp.training.recipes.race.standing import (
    Standing,
    held_out_losses,
    keep_better_half,
    sort_by_score,
    standard_error,
)
from certgp.training.recipes.race.terms import Terms
from certgp.training.recipes.settings import Settings
from certgp.training.recipes.trainer import Fit, Trainer, warn_about_weak_signal
from certgp.training.restraint import choose_factor, prefers_constant, restrain
from certgp.training.stopping import interrupted_outcome

_PROBES, _FINAL = 0.3, 0.7  # shares of the seconds left that a round of probes and a final may use, with max_seconds
_SEEDED = 0.85  # of those left, for all seeded methods together
_TOO_LATE = 0.1  # share of max_seconds: with no more left no fit begins
_CHEAP = 0.5  # of the cost of the method in front: so cheap a final is worth a try before
_NEAR = 0.05  # nats per row: a method expected to end further behind has no final
_FEWEST_PROBE_ROWS = 50
_CONSTANT_ROWS = 10_000  # that tell the scatter of y
_SHORT_SECONDS = 5.0  # a fit that is not worth a probe
_MOST_ROWS_AGAIN = 2_000  # up to which the winner is trained again on all rows: what was held out tells it more
_AGAIN = 0.5  # share of the seconds left that this may be expected to take, with max_seconds


class Contest:
    """The methods of a race, and how they stand."""

    def __init__(
        self,
        entries: Sequence[Entry],
        source: RowSource,
        settings: Settings,
        terms: Terms,
        clock: Clock,
        finished: FinishedFits,
    ) -> None:
        self._entries, self._source, self._terms, self._clock = entries, source, terms, clock
        self._finished = finished
        self._engine, self._new_generator = settings.engine, settings.new_generator
        rng = settings.new_generator()
        learned, held_out = split_rows(source, rng)
        self._order = rng.permutation(learned)  # subsamples are its beginnings
        self._held_out = source.take(held_out).to(torch.float64)
        self.n_rows, self.n_held_out, self.n_learned = source.n_rows, len(held_out), len(learned)
        self.rounds: list[list[Standing]] = []
        self.finals: list[Standing] = []
        self.errors: dict[str, CertgpError] = {}  # by the name of the method, the last of each
        self.left_out: list[str] = []  # methods for which there was no time
        self.seconds_again: dict[str, float] = {}  # CPU seconds of trainings on all rows, by the name of the method
        self.trained_again: set[str] = set()  # methods of which such a training was kept
        self.cuts: dict[str, str] = {}  # what was shortened to keep to the time limit, after the finals
        self.is_cut_short = False  # has the time limit ended a fit, or left a method out?
        self._active: tuple[Entry, Trainer, NDArray[np.int64]] | None = None

    @property
    def standings(self) -> list[Standing]:
        """Of each method the latest, the furthest first and the best of these first."""
        latest: dict[str, Standing] = {}
        for group in (self.finals, *reversed(self.rounds)):
            for each in sort_by_score(group):
                latest.setdefault(each.name, each)
        return list(latest.values())

    @property
    def eligible(self) -> list[Standing]:
        """Those that may win."""
        return [each for each in self.standings if self._may_win(each.entry)]

    @property
    def is_over(self) -> bool:
        """Did the user stop it?"""
        return self._clock.stopped

    @property
    def failed(self) -> dict[str, CertgpError]:
        """Methods that could not be trained at all, and why."""
        known = {each.name for each in self.standings}
        return {name: error for name, error in self.errors.items() if name not in known}

    def probe(self) -> None:
        """All methods on a small subsample, then the better half on a larger one."""
        field: list[tuple[Entry, Standing | None]] = [
            (each, None) for each in self._entries if not self._is_seeded(each)
        ]
        for rows in self._probe_sizes() if field else ():
            self.rounds.append([])  # filled as it goes, for whoever looks in between
            for number, (entry, before) in enumerate(field):
                if self._is_late() or self.is_over:
                    self._leave_out(each.name for each, known in field[number:] if known is None)
                    break
                share = _PROBES / (len(field) - number)
                found = self._train(entry, rows, entry.probe_iterations, before, share)
                self.rounds[-1] += [found] if found is not None else []
            field = [(each.entry, each) for each in self._next_round()]

    def run_finals(self) -> None:
        """Train the seeded and the most promising methods on all rows but the held-out ones."""
        waiting = self.eligible
        seeded = [each for each in self._entries if self._is_seeded(each)]
        for number, entry in enumerate(seeded):
            if self.is_over or self._is_too_late():
                self._leave_out(each.name for each in seeded[number:])
                break
            # what a checkpoint keeps is best done one after the other: a fit cut short may have to begin anew
            parts = 1 if self._finished.are_kept else len(seeded) - number
            self._run_final(entry, None, _SEEDED / parts)
        left = self._terms.thoroughness.finalists
        while waiting and left and not self.is_over:
            chosen = self._next_finalist(waiting)
            if chosen is None:
                break
            if not self._has_time_for(chosen):
                self._leave_out([chosen.name])
                break
            waiting.remove(chosen)
            left -= 1
            self._run_final(chosen.entry, chosen)

    def check_somebody_can_win(self) -> None:
        """Refuse to go on where no method was trained that may win, with the reason."""
        if self.eligible:
            return
        if self.errors:
            raise list(self.errors.values())[-1]
        what = "that can be certified (prefer='proof')" if self._terms.needs_proof else "of the candidates"
        raise InvalidInputError(f"the fit was stopped before any method {what} was trained; let it run longer")

    def give_up(self) -> None:
        """The user wants what there is, and nothing more to be trained."""
        self._clock.stopped = True

    def rescue(self) -> None:
        """After an interrupt: let what the trainer of the moment has reached stand too."""
        if self._active is None:
            return
        entry, trainer, positions = self._active
        process = trainer.process_so_far()
        losses = None if process is None else held_out_losses(process, self._held_out)
        if process is not None and losses is not None and np.isfinite(losses).all():
            self.finals.append(Standing(entry, Fit(process, interrupted_outcome()), positions, losses, 0.0))

    def process_so_far(self) -> GaussianProcess | None:
        """Of the method that is trained now, or of the best so far, as long as it may win."""
        process = None
        if self._active is not None and self._may_win(self._active[0]):
            process = self._active[1].process_so_far()
        best = sort_by_score(self.eligible)
        return process if process is not None or not best else best[0].fit.process

    def complete(self, standing: Standing) -> GaussianProcess:
        """A method's process of all rows: trained on them again where they are few, else conditioned on those that it
        has not seen, with noise(x) where that was asked for.
        """
        again = self._train_again(standing) if self._is_worth_more(standing) else None
        if again is not None:
            return again
        rest = np.setdiff1d(np.arange(self._source.n_rows), standing.positions)
        process = condition_further(standing.fit.process, self._rows(rest), self._engine)
        wanted = standing.entry.settings.wants_input_noise and isinstance(process, SingleProcess)
        if wanted and process.noise_model is None:
            add_noise_model(process, self._source, self._new_generator(), always=True)
        return process

    def settle(self, standing: Standing) -> GaussianProcess:
        """The same as far as the held-out rows confirm it, and folds where rows are few: being the best of several on
        few rows says little. The time limit and an interrupt end it too.
        """
        limit = self._clock.limit()
        complete, trainer = self.complete(standing), standing.entry.trainer(self._clock, limit=limit)
        if self.is_over or self._is_too_late() or not trainer.settings.confirms:
            return complete
        learned = self._rows(standing.positions)
        some = learned.sample(_CONSTANT_ROWS, np.random.default_rng(0))
        if prefers_constant(standing.losses, some, self._held_out):
            factor = choose_factor([(standing.fit.process, learned, self._held_out)])
        else:
            factor = trainer.find_factor(complete, self._source)
            self.cuts |= {} if limit is None else limit.cuts
        if factor == 1.0:
            return complete
        warn_about_weak_signal(factor, self._source.n_rows)
        return restrain(complete, self._source, factor)

    def _is_worth_more(self, standing: Standing) -> bool:
        """Are rows few, and is there time to train a finalist on all of them?"""
        few = standing.is_final and self._source.n_rows <= _MOST_ROWS_AGAIN
        if not few or standing.fit.outcome.stopped or self.is_over:
            return False
        return not self._clock.has_limit or standing.seconds < _AGAIN * self._clock.left

    def _train_again(self, standing: Standing) -> GaussianProcess | None:
        """A finalist's training on all rows, with what was chosen on the way; None where it ends early or fails."""
        kept, limit = standing.entry.keeping_in(self._finished.part(f"{standing.name}:again")), self._clock.limit()
        trainer = kept.trainer(self._clock, limit=limit).with_choices_of(standing.fit.process)
        if limit is not None:
            limit.reserve(trainer.seconds_after_training(self._source.n_rows, self._source.n_columns))
        self._clock.announce(f"{standing.name} on all rows")
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertgpWarning)  # the final has said them
            try:
                fit = trainer.fit(self._source, standing.entry.rank)
                if fit.outcome.stopped:
                    return None
                trainer.decide_noise(fit.process, self._source)
            except CheckpointError:
                raise
            except CertgpError:
                return None
            finally:
                self.seconds_again[standing.name] = time.process_time() - began
        self.trained_again.add(standing.name)
        return fit.process

    def _may_win(self, entry: Entry) -> bool:
        return entry.can_be_certified or not self._terms.needs_proof

    def _is_seeded(self, entry: Entry) -> bool:
        """Does it go to the finals without a probe? Where there is one final only, just methods that cost next to
        nothing do.
        """
        free = self._terms.thoroughness.finalists == 1 and self._cost(entry, self.n_learned) > _SHORT_SECONDS
        return entry.is_seeded and not free

    def _probe_sizes(self) -> list[int]:
        """Numbers of rows of the rounds: half of them all at most, and each four times the one before."""
        sizes = self._terms.thoroughness.probe_rows
        first = min(sizes[0], max(min(_FEWEST_PROBE_ROWS, self.n_learned), self.n_learned // 2))
        return [first, *(rows for rows in sizes[1:] if 2 * rows <= self.n_learned)]

    def _next_round(self) -> list[Standing]:
        promising = keep_better_half(self.rounds[-1]) if self.rounds[-1] else []
        return [each for each in promising if each.entry.can_be_certified or not self._terms.needs_proof]

    def _is_late(self) -> bool:
        """Is more than half of the time used up, and something there to go on with?"""
        return self._has_less_than(0.5)

    def _is_too_late(self) -> bool:
        """Is there hardly any time left, and something there to end with?"""
        return self._has_less_than(_TOO_LATE)

    def _has_less_than(self, share: float) -> bool:
        limit = self._terms.max_seconds or 0.0
        return self._clock.has_limit and bool(self.eligible) and self._clock.left < share * limit

    def _leave_out(self, names: Iterable[str]) -> None:
        """Methods that the user's stop left out need no word; those for which there was no time are told."""
        if not self.is_over:
            self.left_out += names
            self.is_cut_short = True

    def _has_time_for(self, chosen: Standing) -> bool:
        """With a time limit: is as much time left as the last fit took, in the ratio of the two costs?"""
        if not self._clock.has_limit:
            return True
        last = self.finals[-1] if self.finals else chosen
        before = self._cost(last.entry, len(last.positions), None if self.finals else last.entry.probe_iterations)
        ratio = self._cost(chosen.entry, self.n_learned) / before if self.finals and before > 0.0 else 1.0
        return _FINAL * self._clock.left > ratio * last.seconds

    def _next_finalist(self, waiting: Sequence[Standing]) -> Standing | None:
        """At first the method in front by what all rows are expected to give, or one that is far cheaper. Then whoever
        is expected to come near the best, as long as the cost of all fits stays within a few of the winner's.
        """
        ranked = sorted(waiting, key=lambda each: each.predicted_score(self.n_learned))
        if not self.finals:
            cheapest = min(ranked, key=lambda each: self._cost(each.entry, self.n_learned))
            several = self._terms.thoroughness.finalists > 1
            cheap = self._cost(cheapest.entry, self.n_learned) <= _CHEAP * self._cost(ranked[0].entry, self.n_learned)
            return cheapest if several and cheap else ranked[0]
        front, effort = sort_by_score(self.finals)[0], self._terms.thoroughness
        spent = self._spent()
        for each in ranked:
            expected = self._expected_score(each, front)
            cost = self._cost(each.entry, self.n_learned)
            winner = cost if expected < front.score - _NEAR else self._cost(front.entry, self.n_learned)
            free = effort.free_seconds if expected < front.score else effort.free_for_ties
            allowed = max(effort.most_cost * winner, free)
            if expected <= front.score + _NEAR + standard_error(each, front) and spent + cost <= allowed:
                return each
        return None

    def _expected_score(self, standing: Standing, front: Standing) -> float:
        """Predicted from its probes; half of what the method in front gained beyond its own prediction is expected of
        others too.
        """
        surprise = 0.0 if front.before is None else front.before.predicted_score(self.n_learned) - front.score
        return standing.predicted_score(self.n_learned) - 0.5 * max(0.0, surprise)

    def _spent(self) -> float:
        """Cost of all fits so far, by the estimates."""
        probes = sum(self._cost(s.entry, len(s.positions), s.entry.probe_iterations) for r in self.rounds for s in r)
        return probes + sum(self._cost(each.entry, len(each.positions)) for each in self.finals)

    def _cost(self, entry: Entry, n_rows: int, iterations: int | None = None) -> float:
        """About how many CPU seconds a fit takes."""
        return entry.trainer(self._clock, iterations).estimate_seconds(n_rows, self._source.n_columns, entry.rank)

    def _run_final(self, entry: Entry, before: Standing | None, share: float = _FINAL) -> None:
        found = self._train(entry, self.n_learned, None, before, share)
        if found is not None:
            self.finals.append(replace(found, is_final=True))

    def _train(
        self, entry: Entry, rows: int, iterations: int | None, before: Standing | None, share: float
    ) -> Standing | None:
        """Train on the first of the shuffled rows and score on the held-out ones, unless that was done before an
        interruption; None where it fails. With a time limit it may use a share of the seconds that are left.
        """
        began, positions = time.process_time(), np.sort(self._order[:rows])
        key = _key(entry, rows, iterations)
        known = self._finished.recall(key, entry, positions, before)
        if known is not None:
            return known
        kept, limit = entry.keeping_in(self._finished.part(key)), self._clock.limit(share)
        trainer, source = kept.trainer_in_race(self._clock, iterations, limit), self._rows(positions)
        if limit is not None:
            limit.reserve(trainer.seconds_after_training(rows, source.n_columns), trainer.most_reserved)
        self._active = (entry, trainer, positions)
        self._clock.announce(f"{'final' if iterations is None else 'probe'} of {entry.name}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fit = trainer.fit(source, entry.rank)
                trainer.decide_noise(fit.process, source)
                losses = held_out_losses(fit.process, self._held_out)
            except CheckpointError:
                raise
            except CertgpError as error:
                self._finished.drop_part(key)
                self.errors[entry.name] = error
                self._active = None
                return None
        self._active = None
        if not np.isfinite(losses).all():
            self.errors[entry.name] = NotPositiveDefiniteError("its densities of rows held out are not numbers")
            return None
        said = tuple(each.message for each in caught if isinstance(each.message, Warning))
        cuts = {} if limit is None else limit.cuts
        found = Standing(entry, fit, positions, losses, time.process_time() - began, said, before, cuts=cuts)
        if trainer.settings.put_off is None:
            self._finished.add(key, found)
        self.is_cut_short |= limit is not None and limit.reason is not None
        return found

    def _rows(self, positions: NDArray[np.int64]) -> RowSource:
        """Some of the rows, in memory where they are few."""
        if 8 * len(positions) * self._source.n_columns <= KEPT_BYTES:
            return ChunkSource(self._source.take(positions))
        return SubsetSource(self._source, positions)


def _key(entry: Entry, rows: int, iterations: int | None) -> str:
    """Which fit it is: the method, on how many rows, for how long."""
    return f"{entry.name}:{rows}:{iterations}"
