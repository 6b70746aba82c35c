"""How deep models are trained: one or several networks, side by side where that saves time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from certgp.data import RowSource
from certgp.engines import LocalEngine, run_side_by_side, spare_workers
from certgp.errors import InvalidInputError
from certgp.gp import GaussianProcess, LowRankProcess, MixtureProcess
from certgp.training.history import History, OptimisationResult
from certgp.training.mini_batch.evidence import JointModel
from certgp.training.recipes.deep_member import DeepRecipe, Member, MemberFit
from certgp.training.recipes.settings import Settings
from certgp.training.recipes.trainer import Fit, Trainer
from certgp.transforms import check_network

# About how many seconds a member trains on one thread, and how many it takes to start processes that import torch
# (docs/decisions/0017)
_SECONDS_PER_WEIGHT = 1.6e-10  # and row and epoch
_STEP_WEIGHTS = 25_000  # what the rest of a step costs per row, in weights
_FEWEST_ROWS = 12_500  # an epoch on fewer rows has as many steps
_STARTING_SECONDS = 3.0


class DeepTrainer(Trainer):
    """Trains networks together with the GPs on their outputs."""

    calibrates: ClassVar[bool] = True
    learns_noise: ClassVar[bool] = True
    folds_in_doubt: ClassVar[int] = 1  # a network costs as much on few rows as on many

    def __init__(self, recipe: DeepRecipe, settings: Settings) -> None:
        super().__init__(settings)
        recipe.check(settings)
        if settings.checkpoint is not None and not settings.checkpoint.path.parent.is_dir():
            raise InvalidInputError(
                f"checkpoint={str(settings.checkpoint.path)!r} lies in a directory that does not exist; create it first"
            )
        self.recipe, self.group = recipe, recipe.group
        self._unfinished: Callable[[], LowRankProcess] | None = None
        self._done: tuple[Member, ...] = ()

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        members = self._member_fits(source)
        workers = self._workers(source)
        if workers == 1:
            fitted = self._fit_in_turn(members, rank)
        else:
            fitted = run_side_by_side([partial(replace(each, announce=None), rank) for each in members], workers)
        for each in members if self.settings.put_off is None else ():
            each.remove_checkpoint()
        return Fit(_mix(fitted), _join([each.outcome for each in fitted]))

    def fit_automatically(self, source: RowSource, search: Callable[[Trainer], Fit]) -> Fit:
        """The network trained at the default rank; with it held, the smallest rank that meets the tolerance."""
        (only,) = self._member_fits(source)
        rank = self.usable_rank(min(self.recipe.default_rank, self.settings.max_rank))
        module, outcome = only.train(rank)
        found = search(_HeadTrainer(only, module, outcome, self.group))
        if self.settings.put_off is None:
            only.remove_checkpoint()
        return found

    def process_so_far(self) -> LowRankProcess | MixtureProcess | None:
        if self._done:
            return _mix(self._done)
        return None if self._unfinished is None else self._unfinished()

    def count_learned(self, process: GaussianProcess, n_rows: int) -> int:
        """The kernel's alone where rows held back have chosen the epoch and the noise, else the network's too."""
        held_back = self.recipe.held_out(n_rows) > 0
        return self.recipe.embedding + 2 if held_back else super().count_learned(process, n_rows)

    def _member_fits(self, source: RowSource) -> list[MemberFit]:
        if self.recipe.network is not None:
            check_network(self.recipe.network, source.n_columns, self.recipe.embedding)
        seeds = self.settings.new_generator().integers(2**31, size=self.recipe.members)
        return [
            MemberFit(self.recipe, self.settings, source, number, int(seed), self._announce)
            for number, seed in enumerate(seeds)
        ]

    def _announce(self, unfinished: Callable[[], LowRankProcess] | None) -> None:
        self._unfinished = unfinished

    def _fit_in_turn(self, members: Sequence[MemberFit], rank: int) -> list[Member]:
        """One after the other. A callback that stops the fit keeps the members that are done, or the first one."""
        self._done, given = (), self.settings.stop
        limits = []
        for number, each in enumerate(members):
            limit = None if given is None else given.part(1.0 / (len(members) - number))
            limits += [] if limit is None else [limit]
            member = replace(each, settings=replace(each.settings, stop=limit))(rank)
            stopped = member.outcome.stopped and (limit is None or limit.reason is None)
            if stopped and self._done:
                break
            self._done = (*self._done, member)
            if stopped:
                break
        if given is not None:
            given.join(limits)
        return list(self._done)

    def _workers(self, source: RowSource) -> int:
        """How many members to train at a time: one where something must be seen or done in this process, and where
        starting others would take longer than it saves.
        """
        settings = self.settings
        watched = settings.callbacks or settings.verbose or settings.stop is not None
        here = watched or not isinstance(settings.engine, LocalEngine)
        if (
            self.recipe.members == 1
            or here
            or not settings.optimize
            or self.estimate_seconds(source.n_rows, source.n_columns, 0) < _STARTING_SECONDS
        ):
            return 1
        return spare_workers(self.recipe.members)

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        """Of one member."""
        cost = self.recipe.weights(n_columns) + _STEP_WEIGHTS
        return _SECONDS_PER_WEIGHT * max(n_rows, _FEWEST_ROWS) * self.settings.max_iter * cost


class _HeadTrainer(Trainer):
    """A trained network that is held while its GP gets features of other ranks."""

    def __init__(self, member: MemberFit, module: JointModel, outcome: OptimisationResult, group: int) -> None:
        super().__init__(member.settings)
        self.group = group
        self._member, self._module, self._outcome = member, module, outcome

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        return Fit(self._member.process(self._member.with_head(self._module, rank)), self._outcome)


def _mix(members: Sequence[Member]) -> LowRankProcess | MixtureProcess:
    """The only member's process, or the mixture of all."""
    processes = [member.process for member in members]
    return processes[0] if len(processes) == 1 else MixtureProcess(processes)


def _join(outcomes: list[OptimisationResult]) -> OptimisationResult:
    """What several fits did, in turn."""
    if len(outcomes) == 1:
        return outcomes[0]
    history = History(tuple(record for outcome in outcomes for record in outcome.history.iterations))
    return OptimisationResult(
        np.zeros(0),
        float(np.mean([outcome.value for outcome in outcomes])),
        sum(outcome.n_iter for outcome in outcomes),
        all(outcome.converged for outcome in outcomes),
        "; ".join(f"member {i}: {outcome.reason}" for i, outcome in enumerate(outcomes)),
        any(outcome.stopped for outcome in outcomes),
        history,
    )
