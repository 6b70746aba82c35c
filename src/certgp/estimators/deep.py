"""What the deep estimators share: a network in front of a low-rank GP, trained together."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from certgp.data import ArraySource, RowSource, SubsetSource
from certgp.errors import ConvergenceWarning, InvalidInputError, NotCertifiableError, warn_user
from certgp.estimators.base import unoptimised
from certgp.estimators.fingerprint import fingerprint
from certgp.estimators.planned import Plan, PlannedRegressor, TrialRows
from certgp.estimators.validation import (
    DTYPES,
    StartingValues,
    check_choice,
    check_count,
    check_engine,
    generator,
    one_number,
    starting_values,
)
from certgp.features import FeatureMap
from certgp.gp import LowRankModel, LowRankProcess, MixtureProcess
from certgp.guarantees import Certificate, RankCurve
from certgp.training import Callback, History, OptimisationResult, Stage
from certgp.training.checkpoint import Checkpoint
from certgp.training.embedding import raw_outputs
from certgp.training.minibatch import MinibatchSettings, train_minibatches
from certgp.training.objective import fold_feature_statistics
from certgp.training.progress import ProgressBar
from certgp.training.squared_error import Regression, SquaredErrorTask
from certgp.training.stochastic import EvidenceTask, JointModel, finish
from certgp.transforms import Network, TanhNetwork, check_network

TRAININGS = ("running", "full", "paper")
_START_LENGTH_SCALE = 1.0
_FEWEST_HELD_OUT = 10  # fewer rows cannot tell a good epoch from a lucky one
_FULL_BATCH_STAGES = 4  # the embedding is standardised anew between them
_PRETRAINING_SHARE = 0.2  # of max_iter, in the paper's recipe
Rows = NDArray[np.floating]
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Member:
    """One network with its GP, and how its training went."""

    process: LowRankProcess
    outcome: OptimisationResult


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

    @abstractmethod
    def _features(self, start: StartingValues, rank: int, rng: np.random.Generator) -> FeatureMap:
        """The feature map on standardised embeddings."""

    def certify(self, X: ArrayLike | None = None, **options: Any) -> Certificate:
        """How far this model is from the exact GP on the same network's outputs g(x), with proof; see ``MercerGP``."""
        self._refuse_mixtures("certify()")
        return super().certify(X, **options)

    def rank_curve(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> RankCurve:
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

    def _fit_process(self, X: Rows, y: Rows) -> tuple[LowRankProcess | MixtureProcess, OptimisationResult]:  # type: ignore[override]
        self._training_rows = (X, y)
        rank = self._usable_rank(X, self.rank)
        if self.network is not None:
            check_network(self.network, X.shape[1], self.embedding)
        seeds = generator(self.random_state).integers(2**31, size=self.members)
        fitted = [self._fit_member(X, y, rank, member, int(seed)) for member, seed in enumerate(seeds)]
        for member in range(self.members):
            if (checkpoint := self._checkpoint(member, "")) is not None:
                checkpoint.remove()
        if self.members == 1:
            return fitted[0].process, fitted[0].outcome
        return MixtureProcess([each.process for each in fitted]), _joined([each.outcome for each in fitted])

    def _fit_member(self, X: Rows, y: Rows, rank: int, member: int, seed: int) -> _Member:
        rng = np.random.default_rng(seed)
        split_rng, model_rng = rng.spawn(2)
        train, held_out = self._split(len(X), split_rng)
        final = self._source(X, y)
        rows = SubsetSource(final, train)
        plan = self._network_plan(rows, rank, model_rng, member)
        if not self.optimize or final.target_is_constant:
            return _Member(self._unlearned(plan, final), unoptimised())
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        module = JointModel(plan.model, signal, noise)
        if self.training == "full":
            outcome = self._train(plan, rows)
        else:
            outcome = self._train_in_steps(module, X, y, train, held_out, member, seed)
        module.network.to(DTYPES[self.dtype])
        process = finish(
            module,
            final,
            train,
            held_out,
            objective=self.objective,
            variance=self.variance,
            calibrate=self.calibrate,
        )
        return _Member(process, outcome)

    def _split(self, n: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
        """Rows to learn from and rows to choose the epoch and the noise on; none of the latter where there are few."""
        count = round(self.validation_fraction * n)
        if count < _FEWEST_HELD_OUT or self.training == "paper":
            count = 0
        order = rng.permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        return self._network_plan(source, rank, rng, 0)

    def _network_plan(self, source: RowSource, rank: int, rng: np.random.Generator, member: int) -> Plan:
        start = starting_values(self, self._standardiser, _START_LENGTH_SCALE, self.embedding)
        weights_rng, feature_rng = rng.spawn(2)
        network = Network(self._module(source.n_columns, member, weights_rng), self.embedding)
        model = LowRankModel(network.double(), self._features(start, rank, feature_rng)).eval()
        prepare = partial(_standardise_anew, JointModel(model, 1.0, 1.0), source)
        shares = [len(part) for part in np.array_split(np.arange(self.max_iter), _FULL_BATCH_STAGES)]
        return Plan(model, [Stage(source, share, prepare) for share in shares if share], start)

    def _module(self, n_columns: int, member: int, rng: np.random.Generator) -> nn.Module:
        """A fresh default network, or a copy of the user's; of further members the weights are drawn anew."""
        seed = int(rng.integers(2**31))
        if self.network is None:
            widths = [n_columns, *self._hidden_widths(), self.embedding]
            return TanhNetwork(widths, torch.Generator().manual_seed(seed))
        module = copy.deepcopy(self.network)
        if member > 0:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                module.apply(_reset)
        return module

    def _train_in_steps(
        self, module: JointModel, X: Rows, y: Rows, train: Positions, held_out: Positions, member: int, seed: int
    ) -> OptimisationResult:
        source = ArraySource(X, y, self._standardiser, torch.float32)
        validation = SubsetSource(source, held_out) if len(held_out) else None
        module.network.float()
        checkpoint = self._checkpoint(member, fingerprint(self, X, y, seed))
        outcome = self._train_minibatches(module, SubsetSource(source, train), validation, checkpoint, seed)
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped early: {outcome.reason}", ConvergenceWarning)
        return outcome

    def _train_minibatches(
        self,
        module: JointModel,
        rows: RowSource,
        validation: RowSource | None,
        checkpoint: Checkpoint | None,
        seed: int,
    ) -> OptimisationResult:
        """Train network and GP together, in place."""
        self._pretrain(module, rows, seed)
        statistics = "batch" if self.training == "paper" else "running"
        task = EvidenceTask(
            module, rows, validation, objective=self.objective, variance=self.variance, statistics=statistics
        )
        return train_minibatches(task, self._settings(), seed=seed, callbacks=self._observers(), checkpoint=checkpoint)

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

    def _unlearned(self, plan: Plan, source: ArraySource) -> LowRankProcess:
        """The network and the hyper-parameters as they start, conditioned on all rows."""
        network = plan.model.transform
        if isinstance(network, Network):
            network.measure(raw_outputs(network, source).X)
        stats = fold_feature_statistics(plan.model, source, check_engine(self.engine))
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        return LowRankProcess(plan.model.requires_grad_(False), stats, signal, noise, self.variance)

    def _extend_process(self, X: Rows, y: Rows) -> LowRankProcess | MixtureProcess:  # type: ignore[override]
        self._training_rows = None
        engine, source = check_engine(self.engine), self._source(X, y)
        extended = [
            member.updated(fold_feature_statistics(member.model, source, engine)) for member in self._low_rank_members()
        ]
        return extended[0] if len(extended) == 1 else MixtureProcess(extended)

    def _checkpoint(self, member: int, fingerprint: str) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        return Checkpoint(path if self.members == 1 else path.with_name(f"{path.name}.{member}"), fingerprint)


def _standardise_anew(module: JointModel, source: RowSource) -> None:
    module.network.measure(raw_outputs(module.network, source).X)
    module.choose_indices()


def _reset(module: nn.Module) -> None:
    reset: Any = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()


def _joined(outcomes: list[OptimisationResult]) -> OptimisationResult:
    """What several fits did, in turn."""
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
