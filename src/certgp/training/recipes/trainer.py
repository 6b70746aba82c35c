"""What an estimator asks of whatever trains its model."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import torch

from certgp.checks import check_rank
from certgp.data import Chunk, ChunkSource, RowSource, target_is_constant
from certgp.data.outputs import OutputSource
from certgp.data.summary import DISTINCT_LIMIT
from certgp.errors import CertgpWarning, InvalidInputError, RankWarning, WeakSignalWarning, warn_user
from certgp.gp import GaussianProcess, LowRankProcess
from certgp.training.full_batch.trials import Trial
from certgp.training.history import OptimisationResult
from certgp.training.noise import MOST_ROWS, add_noise_model, seconds_to_learn
from certgp.training.recipes.settings import AUTOMATIC, Settings
from certgp.training.restraint import (
    CONSTANT,
    FEWEST_ROWS,
    FOLDS,
    choose_factor,
    count_learned,
    is_doubtful,
    restrain,
    split_folds,
)
from certgp.training.stopping import MOST_RESERVED


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained process conditioned on all rows, and how it came about."""

    process: GaussianProcess
    outcome: OptimisationResult
    trials: tuple[Trial, ...] = ()  # of the starts, or the methods, that were compared
    method: str | None = None  # the method that won, where several were compared
    choice: str | None = None  # why, in words
    interrupted: bool = False  # by the user, so that no further fit should follow

    @property
    def low_rank(self) -> LowRankProcess:
        """The process, where it is one of low rank."""
        if not isinstance(self.process, LowRankProcess):
            raise TypeError(f"a {type(self.process).__name__} has no rank to choose")
        return self.process


@dataclass(frozen=True, eq=False)
class OutputsFit:
    """Processes of several outputs with the same features, and how these came about."""

    processes: tuple[LowRankProcess, ...]
    outcome: OptimisationResult
    trials: tuple[Trial, ...]

    def fits(self) -> list[Fit]:
        """The same for each output."""
        return [Fit(process, self.outcome, self.trials) for process in self.processes]


_FOLD_STEPS = 100  # of training on a fold: whether rows are predicted better than by a constant shows early


class Trainer(ABC):
    """Trains one model on standardised rows; made anew for every fit."""

    calibrates: ClassVar[bool] = False  # does training itself hold rows back to scale the noise?
    learns_noise: ClassVar[bool] = False  # does it decide on noise(x) itself?
    folds_in_doubt: ClassVar[int] = FOLDS  # that are trained again where rows are few
    shares_outputs: ClassVar[bool] = False  # can several outputs have the same features?
    only_folds: ClassVar[bool] = (
        False  # is training made of folds and small samples, so that rows may lie on a cluster?
    )
    most_reserved: ClassVar[float] = MOST_RESERVED  # share of a time limit that is kept for what follows training
    group: int = 1  # features come in groups of this size

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def fit_outputs(self, source: OutputSource, settings: Sequence[Settings]) -> OutputsFit:
        """Train one set of features for several outputs, whose settings differ in units, noise and variances."""
        raise TypeError(f"a {type(self).__name__} trains one output at a time")

    @abstractmethod
    def fit_at(self, source: RowSource, rank: int) -> Fit:
        """Train at this rank and condition on all rows."""

    def process_so_far(self) -> GaussianProcess | None:
        """During a fit: the process that it would end with if it stopped now."""
        return None

    def count_learned(self, process: GaussianProcess, n_rows: int) -> int:
        """Numbers learned from so many rows that may have fitted their noise."""
        return count_learned(process)

    def settle(self, fit: Fit, source: RowSource) -> GaussianProcess:
        """The process of a fit to these rows as far as rows left out confirm it, with the noise that they want."""
        factor = 1.0 if fit.outcome.stopped or fit.interrupted else self.find_factor(fit.process, source)
        if factor == 1.0:
            self.decide_noise(fit.process, source)
            return fit.process
        warn_about_weak_signal(factor, source.n_rows)
        return restrain(fit.process, source, factor)

    def find_factor(self, process: GaussianProcess, source: RowSource) -> float:
        """By how much to raise the noise ratio: one where there is no doubt or nothing was learned."""
        settings = self.settings
        if not settings.confirms or target_is_constant(source):
            return 1.0
        if source.n_rows < FEWEST_ROWS:
            return CONSTANT
        if not settings.has_time_for(0.0):
            return 1.0
        learned = self.count_learned(process, source.n_rows)
        if not is_doubtful(process, source, learned, settings.new_generator()):
            return 1.0
        trained: list[tuple[GaussianProcess, RowSource, Chunk]] = []
        for positions, out in islice(split_folds(source, settings.new_generator()), self.folds_in_doubt):
            rows = ChunkSource(source.take(positions))
            if target_is_constant(rows):
                continue
            fold = self._train_quietly(rows, process.rank) if settings.has_time_for(0.0) else None
            if fold is None or fold.outcome.stopped:  # what has half learned has not yet fitted the noise
                done = f"{len(trained)} of {self.folds_in_doubt}"
                settings.tell_cut("folds", f"rows left out were to confirm the fit in {done} folds")
                return choose_factor(trained) if trained else 1.0
            trained.append((fold.process, rows, source.take(out).to(torch.float64)))
        return choose_factor(trained) if trained else CONSTANT

    def _train_quietly(self, rows: RowSource, rank: int) -> Fit:
        """The same training on some of the rows, from its beginning."""
        again = copy(self)
        again.settings = self.settings.quiet(min(self.settings.max_iter, _FOLD_STEPS))
        usable = max(self.group, min(rank, rows.n_rows) // self.group * self.group)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertgpWarning)
            return again.fit(rows, usable)

    def decide_noise(self, process: GaussianProcess, source: RowSource, outputs: int = 1) -> None:
        """Give the process of a fit to these rows noise(x), where rows predicted without their own targets want it;
        training that decides so itself has done it. The process may be that of one of several ``outputs``.
        """
        settings = self.settings
        if not self.learns_noise and settings.tries_input_noise and not target_is_constant(source):
            rng, left = settings.new_generator(), settings.seconds_left()
            seen = add_noise_model(process, source, rng, settings.wants_input_noise, outputs, left)
            if seen is not None:
                wanted = min(source.n_rows, MOST_ROWS)
                settings.tell_cut("noise", f"whether noise depends on the input from {seen:,} of {wanted:,} rows")

    def with_choices_of(self, process: GaussianProcess) -> Trainer:
        """The same training of further rows, where the choices that led to this process need not be made again."""
        return self

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        """About how many seconds a fit takes on one thread (docs/decisions/0038); what depends on no clock can decide
        without chance.
        """
        return 0.0

    def seconds_after_training(self, n_rows: int, n_columns: int) -> float:
        """About how many CPU seconds follow the last iteration: those of the noise."""
        settings = self.settings
        if not settings.tries_input_noise:
            return 0.0
        rank = settings.max_rank if settings.rank == AUTOMATIC else int(settings.rank)
        return seconds_to_learn(n_rows, 2 * n_columns + rank)

    def fit(self, source: RowSource, rank: int) -> Fit:
        """Train at the rank asked for, as far as these rows can carry it."""
        return self.fit_at(source, self.usable_rank(rank))

    def fit_automatically(self, source: RowSource, search: Callable[[Trainer], Fit]) -> Fit:
        """Let ``search`` find the rank by calling ``fit_at`` of what it is given."""
        return search(self)

    def usable_rank(self, rank: object) -> int:
        """The rank asked for, or the number of distinct rows where that is smaller, as a multiple of ``group``."""
        wanted, group = check_rank(rank), self.group
        if wanted < group:
            raise InvalidInputError(
                f"rank must be at least {group} for features that come in groups of {group}, found {wanted}"
            )
        distinct = self.settings.distinct_rows
        capped = self.settings.cap_rank and distinct < min(wanted, DISTINCT_LIMIT)
        usable = max(group, (distinct if capped else wanted) // group * group)
        if capped:
            warn_user(
                f"rank={wanted} is more than the {distinct} distinct row(s) of X; rank {usable} is used", RankWarning
            )
        return usable


def warn_about_weak_signal(factor: float, n_rows: int) -> None:
    """Say that rows left out did not confirm a fit, and what became of it."""
    if n_rows < FEWEST_ROWS:
        found = f"{n_rows} rows are too few to learn from more than the mean and the scatter of y"
    elif factor == CONSTANT:
        found = "rows left out of the training are not predicted better than by the mean and the scatter of y"
    else:
        found = "rows left out of the training are predicted worse than the fit promises"
    became = "every prediction is these" if factor == CONSTANT else f"its ratio of noise to signal is {factor:g} times"
    what = "the model says no more: " if factor == CONSTANT else "the model is less sure than the likelihood alone: "
    warn_user(f"{found}; {what}{became}. More rows or fewer columns may help", WeakSignalWarning)
