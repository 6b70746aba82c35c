"""A method in the race: what builds its trainer, and how it takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from certgp.training.evaluation_log import FitCheckpoint
from certgp.training.history import Callback
from certgp.training.recipes.settings import AUTOMATIC, Settings
from certgp.training.recipes.trainer import Trainer
from certgp.training.stopping import StopRule, stop_rules


@dataclass(frozen=True, eq=False)
class Entry:
    """A method that takes part."""

    name: str
    build: Callable[[Settings], Trainer]
    settings: Settings
    rank: int  # at which it is trained; methods without one ignore it
    can_be_certified: bool
    probe_iterations: int  # of a probe on a subsample, where the method's own number is not less
    least_rows: int = 0
    most_rows: int | None = None
    is_seeded: bool = False  # does it go to the finals without a probe?
    keeps_gaining: bool = False  # does it gain from ever more rows, as models that hold them do?

    def suits(self, n_rows: int) -> bool:
        """Does it make sense for so many rows?"""
        return self.least_rows <= n_rows and (self.most_rows is None or n_rows <= self.most_rows)

    def keeping_in(self, checkpoint: FitCheckpoint | None) -> Entry:
        """With this checkpoint."""
        return replace(self, settings=replace(self.settings, checkpoint=checkpoint))

    def trainer(self, callback: Callback, iterations: int | None = None, limit: StopRule | None = None) -> Trainer:
        """A new trainer that tells ``callback`` of its iterations, with fewer of them or a time limit where that is
        asked.
        """
        most = self.settings.max_iter
        told: list[Callback] = [callback, *stop_rules(self.settings.callbacks)]  # these decide about its checkpoint too
        return self.build(
            replace(
                self.settings,
                callbacks=told,
                max_iter=most if iterations is None else min(most, iterations),
                stop=limit,
            )
        )

    def trainer_in_race(self, callback: Callback, iterations: int | None, limit: StopRule | None) -> Trainer:
        """The same for a fit to fewer rows than all, which may be too few for noise(x) that is asked for: there it is
        learned where it pays, and by the winner from all rows. Networks learn it while they train.
        """
        trainer = self.trainer(callback, iterations, limit)
        if not trainer.settings.wants_input_noise or (trainer.learns_noise and iterations is None):
            return trainer
        relaxed = replace(self, settings=replace(self.settings, noise=AUTOMATIC))
        return relaxed.trainer(callback, iterations, limit)
