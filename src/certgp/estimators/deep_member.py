"""One network with its GP: started, trained, and turned into a process. A deep model has one or several."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.data import Rows, RowSource, StandardisedRows, SubsetSource
from certgp.errors import ConvergenceWarning, warn_user
from certgp.estimators.base import unoptimised
from certgp.estimators.fingerprint import fingerprint
from certgp.estimators.planned import Plan
from certgp.estimators.validation import DTYPES, StartingValues, check_engine, starting_values
from certgp.gp import LowRankModel, LowRankProcess
from certgp.training import EvaluationLog, OptimisationResult, Stage
from certgp.training.checkpoint import Checkpoint
from certgp.training.embedding import raw_outputs
from certgp.training.objective import fold_feature_statistics
from certgp.training.stochastic import JointModel, finish
from certgp.transforms import Network, TanhNetwork

if TYPE_CHECKING:
    from certgp.estimators.deep import DeepRegressor

_START_LENGTH_SCALE = 1.0
_FEWEST_HELD_OUT = 10  # fewer rows cannot tell a good epoch from a lucky one
_FULL_BATCH_STAGES = 4  # the embedding is standardised anew between them
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Member:
    """A network with its GP, given all rows, and how its training went."""

    process: LowRankProcess
    outcome: OptimisationResult


@dataclass(frozen=True, eq=False)
class MemberFit:
    """The fit of one member; what happens in it follows from the estimator's parameters, the rows and the seed."""

    estimator: DeepRegressor
    rows: Rows  # in the user's units
    number: int  # among the members
    seed: int

    def __call__(self, rank: int) -> Member:
        """Train at this rank and condition on all rows."""
        module, outcome = self.trained(rank)
        return Member(self.process(module), outcome)

    def trained(self, rank: int) -> tuple[JointModel, OptimisationResult]:
        """The network and its GP after training on the rows that are not held out; as they start where nothing is to
        be learned.
        """
        estimator, (train, held_out) = self.estimator, self.split
        rows = SubsetSource(self._source(), train)
        plan = self._plan(rows, rank)
        module = JointModel(plan.model, float(plan.start.kernel.signal_variance), plan.start.noise_variance)
        if not self.learns:
            return module, unoptimised()
        if estimator.training == "full":
            outcome = self._train_on_all_rows(plan, rows)
        else:
            outcome = self._train_in_steps(module, train, held_out)
        module.network.to(DTYPES[estimator.dtype])
        return module, outcome

    def process(self, module: JointModel) -> LowRankProcess:
        """Head polished, noise calibrated, conditioned on all rows."""
        estimator, source = self.estimator, self._source()
        if not self.learns:
            return self._unlearned(module, source)
        objective, variance, calibrate = estimator.objective, estimator.variance, estimator.calibrate
        return finish(module, source, *self.split, objective=objective, variance=variance, calibrate=calibrate)

    def with_head(self, module: JointModel, rank: int) -> JointModel:
        """The same network under features of another rank, at the length-scales and variances that it has."""
        kernel = module.features.kernel_family(module.features.log_length_scale.detach().exp())
        start = replace(self._start(), kernel=kernel)
        features = self.estimator._features(start, rank, self._generators()[2])
        return JointModel(LowRankModel(copy.deepcopy(module.network), features).eval(), *module.variances)

    @property
    def learns(self) -> bool:
        """Is there anything to learn?"""
        return self.estimator.optimize and not self.estimator._summary.target_is_constant

    @property
    def split(self) -> tuple[Positions, Positions]:
        """Rows to learn from and rows to choose the epoch and the noise on; none of the latter where there are few."""
        n = self.rows.n_rows
        count = round(self.estimator.validation_fraction * n)
        if count < _FEWEST_HELD_OUT or self.estimator.training == "paper":
            count = 0
        order = self._generators()[0].permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _generators(self) -> tuple[np.random.Generator, np.random.Generator, np.random.Generator]:
        """Of the split, of the weights and of the features, each from its beginning."""
        split, model = np.random.default_rng(self.seed).spawn(2)
        weights, features = model.spawn(2)
        return split, weights, features

    def _source(self) -> StandardisedRows:
        return self.estimator._source(self.rows)

    def _start(self) -> StartingValues:
        estimator = self.estimator
        return starting_values(estimator, estimator._standardiser, _START_LENGTH_SCALE, estimator.embedding)

    def _plan(self, source: RowSource, rank: int) -> Plan:
        start, (_, weights_rng, feature_rng) = self._start(), self._generators()
        estimator = self.estimator
        network = Network(self._module(source.n_columns, weights_rng), estimator.embedding)
        model = LowRankModel(network.double(), estimator._features(start, rank, feature_rng)).eval()
        prepare = partial(_standardise_anew, JointModel(model, 1.0, 1.0), source)
        shares = [len(part) for part in np.array_split(np.arange(estimator.max_iter), _FULL_BATCH_STAGES)]
        return Plan(model, [Stage(source, share, prepare) for share in shares if share], start)

    def _module(self, n_columns: int, rng: np.random.Generator) -> nn.Module:
        """A fresh default network, or a copy of the user's; of further members the weights are drawn anew."""
        estimator, seed = self.estimator, int(rng.integers(2**31))
        if estimator.network is None:
            widths = [n_columns, *estimator._hidden_widths(), estimator.embedding]
            return TanhNetwork(widths, torch.Generator().manual_seed(seed))
        module = copy.deepcopy(estimator.network)
        if self.number > 0:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                module.apply(_reset)
        return module

    def _train_on_all_rows(self, plan: Plan, rows: RowSource) -> OptimisationResult:
        path = self.checkpoint_path()
        if path is None:
            return self.estimator._train(plan, rows)
        log = EvaluationLog(path, self._fingerprint())
        try:
            return self.estimator._train(plan, rows, log=log)
        finally:
            log.close()  # the file stays until all members are done

    def _train_in_steps(self, module: JointModel, train: Positions, held_out: Positions) -> OptimisationResult:
        estimator = self.estimator
        source = StandardisedRows(self.rows, estimator._standardiser, torch.float32)
        validation = SubsetSource(source, held_out) if len(held_out) else None
        module.network.float()
        outcome = estimator._train_minibatches(
            module, SubsetSource(source, train), validation, self._checkpoint(), self.seed, partial(self._show, module)
        )
        estimator._unfinished = None
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped early: {outcome.reason}", ConvergenceWarning)
        return outcome

    def _show(self, module: JointModel, best: Callable[[], dict[str, Tensor]]) -> None:
        """Let ``so_far`` ask for the model of the best weights so far."""
        self.estimator._unfinished = lambda: self._process_of(module, best())

    def _process_of(self, module: JointModel, weights: dict[str, Tensor]) -> LowRankProcess:
        module = copy.deepcopy(module)
        module.restore(weights)
        module.network.to(DTYPES[self.estimator.dtype])
        return self.process(module.eval())

    def _unlearned(self, module: JointModel, source: StandardisedRows) -> LowRankProcess:
        """The network and the hyper-parameters as they start, conditioned on all rows."""
        module.network.measure(raw_outputs(module.network, source).X)
        stats = fold_feature_statistics(module.model, source, check_engine(self.estimator.engine))
        return LowRankProcess(module.model.requires_grad_(False), stats, *module.variances, self.estimator.variance)

    def checkpoint_path(self) -> Path | None:
        """The checkpoint of this member."""
        estimator = self.estimator
        if estimator.checkpoint is None:
            return None
        path = Path(estimator.checkpoint)
        return path if estimator.members == 1 else path.with_name(f"{path.name}.{self.number}")

    def _checkpoint(self) -> Checkpoint | None:
        path = self.checkpoint_path()
        return None if path is None else Checkpoint(path, self._fingerprint())

    def _fingerprint(self) -> str:
        return fingerprint(self.estimator, self.estimator._summary.digest, self.seed)


def _standardise_anew(module: JointModel, source: RowSource) -> None:
    module.network.measure(raw_outputs(module.network, source).X)
    module.choose_indices()


def _reset(module: nn.Module) -> None:
    reset: Any = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
