"""What the deep estimators share: a network in front of a low-rank GP, trained together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from torch import Tensor, nn

from certgp.data import Rows, RowSource
from certgp.engines import LocalEngine, side_by_side, spare_workers
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.automatic_rank import AUTOMATIC, fit_with_automatic_rank
from certgp.estimators.deep_member import Member, MemberFit
from certgp.estimators.planned import Plan, PlannedRegressor, TrialRows
from certgp.estimators.validation import (
    StartingValues,
    check_choice,
    check_count,
    check_engine,
    generator,
    one_number,
)
from certgp.features import FeatureMap
from certgp.gp import LowRankProcess, MixtureProcess
from certgp.guarantees import Certificate, RankCurve
from certgp.training import Callback, History, OptimisationResult
from certgp.training.checkpoint import Checkpoint
from certgp.training.minibatch import MinibatchSettings, train_minibatches
from certgp.training.objective import fold_feature_statistics
from certgp.training.progress import ProgressBar
from certgp.training.squared_error import Regression, SquaredErrorTask
from certgp.training.stochastic import EvidenceTask, JointModel
from certgp.transforms import check_network

TRAININGS = ("running", "full", "paper")
_PRETRAINING_SHARE = 0.2  # of max_iter, in the paper's recipe
# Seconds of one member's training on one thread, about, and of starting processes that import torch (docs/deep.md)
_SECONDS_PER_WEIGHT = 1.6e-10  # and row and epoch
_STEP_WEIGHTS = 25_000  # what the rest of a step costs per row, in weights
_FEWEST_ROWS = 12_500  # an epoch on fewer rows has as many steps
_STARTING_SECONDS = 3.0


class DeepRegressor(PlannedRegressor):
    """A GP on the outputs g(x) of a network, both learned from the evidence. Subclasses choose the features."""

    embedding: int
    hidden: Sequence[int]
    network: nn.Module | None
    training: str
    batch_size: int
    learning_rate: float
    shrinkage: float
    validation_fraction: float
    patience: int | None
    members: int
    calibrate: bool
    checkpoint: str | Path | None
    _calibrates_itself: ClassVar[bool] = True  # held-out rows are part of the fit
    _default_rank: int  # at which the network is trained with rank="auto"
    _done: tuple[Member, ...] = ()  # only while members are trained one after the other

    @abstractmethod
    def _features(self, start: StartingValues, rank: int, rng: np.random.Generator) -> FeatureMap:
        """The feature map on standardised embeddings."""

    def certify(self, X: ArrayLike | Rows | None = None, **options: Any) -> Certificate:
        """How far this model is from the exact GP on the same network's outputs g(x), with proof; see ``MercerGP``."""
        self._refuse_mixtures("certify()")
        return super().certify(X, **options)

    def rank_curve(self, X: ArrayLike | Rows | None = None, y: ArrayLike | None = None) -> RankCurve:
        """Log evidence and guarantee for every rank up to the fitted one, on the fitted embedding."""
        self._refuse_mixtures("rank_curve()")
        return super().rank_curve(X, y)

    def _refuse_mixtures(self, what: str) -> None:
        fitted = getattr(self, "_process", None)
        if isinstance(fitted, MixtureProcess):
            raise NotCertifiableError(
                f"{what} speaks of one GP on one embedding, and this model is a mixture of {len(fitted.members)} "
                "networks, each with a GP of its own; fit with members=1"
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("embedding", self.embedding)
        check_choice("training", self.training, TRAININGS)
        check_count("batch_size", self.batch_size, least=2)
        check_count("members", self.members)
        if self.patience is not None:
            check_count("patience", self.patience)
        one_number("learning_rate", self.learning_rate, "be positive and finite", lambda x: 0.0 < x < np.inf)
        one_number("shrinkage", self.shrinkage, "be at least 0 and finite", lambda x: 0.0 <= x < np.inf)
        one_number("validation_fraction", self.validation_fraction, "lie in [0, 1)", lambda x: 0.0 <= x < 1.0)
        self._hidden_widths()
        if self.rank == AUTOMATIC and self.members > 1:
            raise InvalidInputError(
                f"rank='auto' needs members=1, found members={self.members}: it chooses the rank by a certificate, "
                "which a mixture of GPs on different embeddings does not have; give a number as rank"
            )
        if self.checkpoint is not None and not Path(self.checkpoint).parent.is_dir():
            raise InvalidInputError(
                f"checkpoint={str(self.checkpoint)!r} lies in a directory that does not exist; create it first"
            )

    def _hidden_widths(self) -> list[int]:
        if isinstance(self.hidden, (str, bytes)) or not isinstance(self.hidden, Sequence):
            raise InvalidInputError(
                f"hidden must be a sequence of layer widths such as (512, 256), found {self.hidden!r}"
            )
        return [check_count("hidden", width) for width in self.hidden]

    def _fit_process(self, rows: Rows) -> tuple[LowRankProcess | MixtureProcess, OptimisationResult]:  # type: ignore[override]
        self._remember(rows)
        if self.network is not None:
            check_network(self.network, rows.n_columns, self.embedding)
        seeds = generator(self._seed()).integers(2**31, size=self.members)
        fits = [MemberFit(self, rows, number, int(seed)) for number, seed in enumerate(seeds)]
        if self.rank == AUTOMATIC:
            fitted = [self._fit_automatic(fits[0])]
        else:
            fitted = self._fit_members(fits, self._usable_rank(self.rank))
        for path in filter(None, (fit.checkpoint_path() for fit in fits)):
            path.unlink(missing_ok=True)
        return _mixed(fitted), _joined([each.outcome for each in fitted])

    def _fit_automatic(self, fit: MemberFit) -> Member:
        """The network trained at the default rank; with it held, the smallest rank that meets the tolerance."""
        rank = self._usable_rank(min(self._default_rank, self.max_rank))
        module, outcome = fit.trained(rank)

        def at(_: RowSource, rank: int) -> tuple[LowRankProcess, OptimisationResult]:
            return fit.process(fit.with_head(module, rank)), outcome

        return Member(*fit_with_automatic_rank(self, fit.rows, at))

    def _fit_members(self, fits: list[MemberFit], rank: int) -> list[Member]:
        workers = self._workers(fits[0])
        if workers == 1:
            return self._fit_in_turn(fits, rank)
        bare = clone(self)  # without an earlier fit
        bare._standardiser, bare._summary = self._standardiser, self._summary
        return side_by_side([partial(replace(fit, estimator=bare), rank) for fit in fits], workers)

    def _fit_in_turn(self, fits: list[MemberFit], rank: int) -> list[Member]:
        """One after the other. A callback that stops the fit keeps the members that are done, or the first one."""
        try:
            for fit in fits:
                member = fit(rank)
                if member.outcome.stopped and self._done:
                    break
                self._done = (*self._done, member)
                if member.outcome.stopped:
                    break
            return list(self._done)
        finally:
            self._done = ()

    def _workers(self, fit: MemberFit) -> int:
        """How many members to train at a time: one where something must be seen or done in this process, and where
        starting others would take longer than it saves.
        """
        here = self.callbacks or self.verbose or not isinstance(check_engine(self.engine), LocalEngine)
        if (
            self.members == 1
            or here
            or not fit.learns
            or self._seconds(fit.rows.n_rows, fit.rows.n_columns) < _STARTING_SECONDS
        ):
            return 1
        return spare_workers(self.members)

    def _seconds(self, n_rows: int, n_columns: int) -> float:
        """What training one member takes on one thread, about."""
        widths = [n_columns, *self._hidden_widths(), self.embedding]
        weights = sum(a * b for a, b in pairwise(widths))
        if self.network is not None:
            weights = sum(p.numel() for p in self.network.parameters())
        return _SECONDS_PER_WEIGHT * max(n_rows, _FEWEST_ROWS) * self.max_iter * (weights + _STEP_WEIGHTS)

    def so_far(self) -> Self:
        """In a callback: the model that this fit would return if it stopped now; see ``MercerGP``."""
        model = super().so_far()
        model._done = ()
        return model

    def _process_so_far(self) -> LowRankProcess | MixtureProcess | None:  # type: ignore[override]
        return _mixed(self._done) if self._done else super()._process_so_far()

    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        raise NotImplementedError("each member of a deep model makes a plan of its own")  # see MemberFit

    def _train_minibatches(
        self,
        module: JointModel,
        rows: RowSource,
        validation: RowSource | None,
        checkpoint: Checkpoint | None,
        seed: int,
        begin: Callable[[Callable[[], dict[str, Tensor]]], None],
    ) -> OptimisationResult:
        """Train network and GP together, in place; ``begin`` is told where to ask for the best weights so far."""
        self._pretrain(module, rows, seed)
        statistics = "batch" if self.training == "paper" else "running"
        task = EvidenceTask(
            module, rows, validation, objective=self.objective, variance=self.variance, statistics=statistics
        )
        return train_minibatches(
            task, self._settings(), seed=seed, callbacks=self._observers(), checkpoint=checkpoint, begin=begin
        )

    def _observers(self) -> list[Callback]:
        return [*(self.callbacks or ()), *([ProgressBar(self.max_iter)] if self.verbose else [])]

    def _settings(self) -> MinibatchSettings:
        common = MinibatchSettings(
            epochs=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            shrinkage=self.shrinkage,
            patience=self.patience,
        )
        if self.training != "paper":
            return common
        return replace(common, shrinkage=0.0, average_decay=0.0, constant_rate=True)

    def _pretrain(self, module: JointModel, rows: RowSource, seed: int) -> None:
        """Let the network learn y on squared error first, through a linear readout that is then dropped.

        The paper does so. Here one epoch of it serves embeddings of one dimension: in a line there is no way around a
        fold, and a GP fitted to a random embedding is happy to fold it (three of five fits on protein ended .1 worse).
        """
        epochs = max(1, round(_PRETRAINING_SHARE * self.max_iter)) if self.training == "paper" else 1
        if self.training != "paper" and self.embedding > 1:
            return
        alone = Regression(module.network.module, self.embedding, torch.Generator().manual_seed(seed))
        train_minibatches(SquaredErrorTask(alone, rows, None), replace(self._settings(), epochs=epochs), seed=seed)

    def _extend_process(self, rows: Rows) -> LowRankProcess | MixtureProcess:  # type: ignore[override]
        self._training_rows, self._certificate = None, None
        engine, source = check_engine(self.engine), self._source(rows)
        extended = [
            member.updated(fold_feature_statistics(member.model, source, engine)) for member in self._low_rank_members()
        ]
        return extended[0] if len(extended) == 1 else MixtureProcess(extended)


def _mixed(members: Sequence[Member]) -> LowRankProcess | MixtureProcess:
    """The only member's process, or the mixture of all."""
    processes = [member.process for member in members]
    return processes[0] if len(processes) == 1 else MixtureProcess(processes)


def _joined(outcomes: list[OptimisationResult]) -> OptimisationResult:
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
