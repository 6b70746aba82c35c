"""What an estimator asks of whatever trains its model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from certgp.checks import check_rank
from certgp.data import RowSource, target_is_constant
from certgp.data.outputs import OutputSource
from certgp.data.summary import DISTINCT_LIMIT
from certgp.errors import InvalidInputError, RankWarning, warn_user
from certgp.gp import GaussianProcess, LowRankProcess
from certgp.training.full_batch.trials import Trial
from certgp.training.history import OptimisationResult
from certgp.training.noise import add_noise_model
from certgp.training.recipes.settings import Settings


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


class Trainer(ABC):
    """Trains one model on standardised rows; made anew for every fit."""

    calibrates: ClassVar[bool] = False  # does training itself hold rows back to scale the noise?
    learns_noise: ClassVar[bool] = False  # does it decide on noise(x) itself?
    shares_outputs: ClassVar[bool] = False  # can several outputs have the same features?
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

    def decide_noise(self, process: GaussianProcess, source: RowSource, outputs: int = 1) -> None:
        """Give the process of a fit to these rows noise(x), where rows predicted without their own targets want it;
        training that decides so itself has done it. The process may be that of one of several ``outputs``.
        """
        settings = self.settings
        if not self.learns_noise and settings.tries_input_noise and not target_is_constant(source):
            add_noise_model(process, source, settings.new_generator(), settings.wants_input_noise, outputs)

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        """About how many seconds a fit takes on one thread (docs/decisions/0038); what depends on no clock can decide
        without chance.
        """
        return 0.0

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
