"""One network with its GP: started, trained, and turned into a process. A deep model has one or several."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.checks import check_choice, check_count, check_positive, one_number
from certgp.data import RowSource, SubsetSource, TypedSource, target_is_constant
from certgp.engines import fold_feature_statistics
from certgp.errors import ConvergenceWarning, InvalidInputError, warn_user
from certgp.features import FeatureMap
from certgp.gp import LowRankModel, LowRankProcess
from certgp.training.checkpoint import Checkpoint
from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.stages import Stage
from certgp.training.history import OptimisationResult
from certgp.training.mini_batch.descent import Running, SemiStochastic
from certgp.training.mini_batch.embedding import raw_outputs
from certgp.training.mini_batch.evidence import EvidenceTask, JointModel, finish
from certgp.training.mini_batch.squared_error import Regression, SquaredErrorTask
from certgp.training.mini_batch.steps import MinibatchSettings, train_minibatches
from certgp.training.noise import add_noise_model, learn_noise, refuse_input_noise
from certgp.training.recipes.settings import AUTOMATIC, DTYPES, Settings, Start
from certgp.training.recipes.staged import Plan, condition, run_plan
from certgp.transforms import Network, TanhNetwork

TRAININGS = ("running", "full", "paper")
BuildHead = Callable[[Start, int, np.random.Generator], FeatureMap]  # features of a rank on standardised embeddings
Positions = NDArray[np.int64]
_START_LENGTH_SCALE = 1.0
_FEWEST_HELD_OUT = 10  # fewer rows cannot tell a good epoch from a lucky one
_FULL_BATCH_STAGES = 4  # the embedding is standardised anew between them
# The paper's recipe. Its text leaves these open; they were chosen on held-out training rows (docs/decisions/0033)
_PRETRAINING_SHARE = 0.5  # of max_iter: epochs on squared error
_PRETRAINING_RATE = 1e-3
_HEAD_STEPS, _HEAD_RATE = 1, 1e-4  # of length-scales and variances, an epoch, on all rows
_ADAM_BETAS = (0.9, 0.999)  # those of Kingma & Ba (2015)


@dataclass(frozen=True, eq=False)
class DeepRecipe:
    """The parameters of ``DeepMercerGP`` and ``DeepFourierGP`` that concern the network and its training."""

    build_head: BuildHead
    group: int  # features of the head come in groups of this size
    default_rank: int  # at which the network is trained with rank="auto"
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

    def check(self, settings: Settings) -> None:
        """Refuse parameters that cannot work, before any data are looked at."""
        check_count("embedding", self.embedding)
        check_choice("training", self.training, TRAININGS)
        check_count("batch_size", self.batch_size, least=2)
        check_count("members", self.members)
        if self.patience is not None:
            check_count("patience", self.patience)
        check_positive("learning_rate", self.learning_rate)
        one_number("shrinkage", self.shrinkage, "be at least 0 and finite", lambda x: 0.0 <= x < np.inf)
        one_number("validation_fraction", self.validation_fraction, "lie in [0, 1)", lambda x: 0.0 <= x < 1.0)
        self.widths(1)
        if settings.wants_input_noise and settings.optimize and (self.as_in_paper or self.validation_fraction == 0.0):
            refuse_input_noise("training='paper' and validation_fraction=0 hold none back")
        if settings.rank == AUTOMATIC and self.members > 1:
            raise InvalidInputError(
                f"rank='auto' needs members=1, found members={self.members}: it chooses the rank by a certificate, "
                "which a mixture of GPs on different embeddings does not have; give a number as rank"
            )

    @property
    def as_in_paper(self) -> bool:
        """Is the network trained by the paper's recipe?"""
        return self.training == "paper"

    def held_out(self, n_rows: int) -> int:
        """How many of so many rows choose the epoch and the noise; none where there are few."""
        count = round(self.validation_fraction * n_rows)
        return 0 if count < _FEWEST_HELD_OUT or self.as_in_paper else count

    def widths(self, n_columns: int) -> list[int]:
        """Layer widths of the default network."""
        if isinstance(self.hidden, (str, bytes)) or not isinstance(self.hidden, Sequence):
            raise InvalidInputError(
                f"hidden must be a sequence of layer widths such as (512, 256), found {self.hidden!r}"
            )
        return [n_columns, *(check_count("hidden", width) for width in self.hidden), self.embedding]

    def weights(self, n_columns: int) -> int:
        """Number of the network's weights, about."""
        if self.network is not None:
            return sum(p.numel() for p in self.network.parameters())
        return sum(a * b for a, b in pairwise(self.widths(n_columns)))

    def steps(self, epochs: int) -> MinibatchSettings:
        """How small steps are made."""
        common = MinibatchSettings(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            shrinkage=self.shrinkage,
            patience=self.patience,
        )
        if not self.as_in_paper:
            return common
        return replace(
            common,
            shrinkage=0.0,
            average_decay=0.0,
            constant_rate=True,
            one_pass=True,
            refresh_every=1,
            betas=_ADAM_BETAS,
            head_steps=_HEAD_STEPS,
            head_learning_rate=_HEAD_RATE,
        )


@dataclass(frozen=True, eq=False)
class Member:
    """A network with its GP, given all rows, and how its training went."""

    process: LowRankProcess
    outcome: OptimisationResult


@dataclass(frozen=True, eq=False)
class MemberFit:
    """The fit of one member; what happens in it follows from the recipe, the settings, the rows and the seed."""

    recipe: DeepRecipe
    settings: Settings
    source: RowSource
    number: int  # among the members
    seed: int
    announce: Callable[[Callable[[], LowRankProcess] | None], None] | None = None  # told how to get a model so far

    def __call__(self, rank: int) -> Member:
        """Train at this rank and condition on all rows."""
        module, outcome = self.train(rank)
        return Member(self.process(module), outcome)

    def train(self, rank: int) -> tuple[JointModel, OptimisationResult]:
        """The network and its GP after training on the rows that are not held out; as they start where nothing is to
        be learned.
        """
        train, held_out = self.split
        rows = SubsetSource(self.source, train)
        plan = self._plan(rows, rank)
        module = JointModel(plan.model, float(plan.start.kernel.signal_variance), plan.start.noise_variance)
        if not self.learns:
            return module, OptimisationResult.none()
        if self.recipe.training == "full":
            outcome = self._train_on_all_rows(plan, rows)
        else:
            outcome = self._train_in_steps(module, train, held_out)
        module.network.to(DTYPES[self.settings.dtype])
        return module, outcome

    def process(self, module: JointModel) -> LowRankProcess:
        """Head polished, noise calibrated, conditioned on all rows."""
        if not self.learns:
            return self._keep_as_given(module)
        settings, (train, held_out) = self.settings, self.split
        if settings.wants_input_noise and not len(held_out):
            refuse_input_noise("this fit held none back (see validation_fraction)")
        learn = partial(learn_noise, rng=self._generators()[3], always=settings.wants_input_noise)
        return finish(
            module,
            self.source,
            train,
            held_out,
            objective=settings.objective,
            variance=settings.variance,
            calibrate=self.recipe.calibrate,
            polish=not self.recipe.as_in_paper,
            learn_noise=learn if settings.tries_input_noise else None,
        )

    def with_head(self, module: JointModel, rank: int) -> JointModel:
        """The same network under features of another rank, at the length-scales and variances that it has."""
        start = replace(self._start(), kernel=module.features.fixed_kernel())
        features = self.recipe.build_head(start, rank, self._generators()[2])
        return JointModel(LowRankModel(copy.deepcopy(module.network), features).eval(), *module.variances)

    @property
    def learns(self) -> bool:
        """Is there anything to learn?"""
        return self.settings.optimize and not target_is_constant(self.source)

    @property
    def split(self) -> tuple[Positions, Positions]:
        """Rows to learn from and rows to choose the epoch and the noise on; none of the latter where there are few."""
        n = self.source.n_rows
        count = self.recipe.held_out(n)
        order = self._generators()[0].permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def remove_checkpoint(self) -> None:
        """The fit is done; its file is not needed any more."""
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            checkpoint.remove()

    def _generators(self) -> tuple[np.random.Generator, ...]:
        """Of the split, of the weights, of the features and of the noise, each from its beginning."""
        split, model, noise = np.random.default_rng(self.seed).spawn(3)
        weights, features = model.spawn(2)
        return split, weights, features, noise

    def _start(self) -> Start:
        return self.settings.start(_START_LENGTH_SCALE, self.recipe.embedding)

    def _plan(self, source: RowSource, rank: int) -> Plan:
        start, (_, weights_rng, feature_rng, _) = self._start(), self._generators()
        network = Network(self._build_module(source.n_columns, weights_rng), self.recipe.embedding)
        model = LowRankModel(network.double(), self.recipe.build_head(start, rank, feature_rng)).eval()
        prepare = partial(_standardise_anew, JointModel(model, 1.0, 1.0), source)
        shares = [len(part) for part in np.array_split(np.arange(self.settings.max_iter), _FULL_BATCH_STAGES)]
        return Plan(model, [Stage(source, share, prepare) for share in shares if share], start)

    def _build_module(self, n_columns: int, rng: np.random.Generator) -> nn.Module:
        """A fresh default network, or a copy of the user's; of further members the weights are drawn anew."""
        recipe, seed = self.recipe, int(rng.integers(2**31))
        if recipe.network is None:
            start = torch.Generator().manual_seed(seed)
            return TanhNetwork(recipe.widths(n_columns), start, glorot=recipe.as_in_paper)
        module = copy.deepcopy(recipe.network)
        if self.number > 0:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                module.apply(_reset)
        return module

    def _train_on_all_rows(self, plan: Plan, rows: RowSource) -> OptimisationResult:
        self._announce(partial(condition, plan, rows, self.settings))
        checkpoint = self._checkpoint()
        log = None if checkpoint is None else EvaluationLog(checkpoint.path, checkpoint.fingerprint)
        try:
            outcome = run_plan(plan, self.settings, log=log)
        finally:
            if log is not None:
                log.close()  # the file stays until all members are done
        self._announce(None)
        self._warn_if_unfinished(outcome, "the fit stopped before it converged")
        return outcome

    def _train_in_steps(self, module: JointModel, train: Positions, held_out: Positions) -> OptimisationResult:
        source, recipe = TypedSource(self.source, torch.float32), self.recipe
        validation = SubsetSource(source, held_out) if len(held_out) else None
        rows = SubsetSource(source, train)
        module.network.float()
        self._pretrain(module, rows)
        task = EvidenceTask(
            module,
            rows,
            validation,
            objective=self.settings.objective,
            variance=self.settings.variance,
            descent=SemiStochastic() if recipe.as_in_paper else Running(),
        )
        outcome = train_minibatches(
            task,
            recipe.steps(self.settings.max_iter),
            seed=self.seed,
            callbacks=self.settings.observers,
            checkpoint=self._checkpoint(),
            begin=partial(self._show, module),
            is_up=self.settings.is_up,
        )
        self._announce(None)
        self._warn_if_unfinished(outcome, "the fit stopped early")
        return outcome

    def _pretrain(self, module: JointModel, rows: RowSource) -> None:
        """Let the network learn y on squared error first, through a linear readout that is then dropped.

        The paper does so [Wilson et al. 2016]. Otherwise one epoch of it serves embeddings of one dimension: in a line
        there is no way around a fold, and a GP fitted to a random embedding keeps its folds (docs/decisions/0015).
        """
        recipe = self.recipe
        if recipe.as_in_paper:
            steps = replace(recipe.steps(pretraining_epochs(self.settings.max_iter)), learning_rate=_PRETRAINING_RATE)
        elif recipe.embedding == 1:
            steps = recipe.steps(1)
        else:
            return
        alone = Regression(module.network.module, recipe.embedding, torch.Generator().manual_seed(self.seed))
        train_minibatches(SquaredErrorTask(alone, rows, None), steps, seed=self.seed, is_up=self.settings.is_up)

    def _show(self, module: JointModel, best: Callable[[], dict[str, Tensor]]) -> None:
        """Tell how to get the model of the best weights so far."""
        self._announce(lambda: self._process_of(module, best()))

    def _announce(self, unfinished: Callable[[], LowRankProcess] | None) -> None:
        if self.announce is not None:
            self.announce(unfinished)

    def _process_of(self, module: JointModel, weights: dict[str, Tensor]) -> LowRankProcess:
        module = copy.deepcopy(module)
        module.restore(weights)
        module.network.to(DTYPES[self.settings.dtype])
        return self.process(module.eval())

    def _keep_as_given(self, module: JointModel) -> LowRankProcess:
        """The network and the hyper-parameters as they start, conditioned on all rows."""
        module.network.measure(raw_outputs(module.network, self.source).X)
        stats = fold_feature_statistics(module.model, self.source, self.settings.engine)
        model, settings = module.model.requires_grad_(False), self.settings
        process = LowRankProcess(model, stats, *module.variances, settings.variance)
        if settings.wants_input_noise:  # nothing was learned, so that no row has been seen
            add_noise_model(process, self.source, self._generators()[3], always=True)
        return process

    def _checkpoint(self) -> Checkpoint | None:
        if self.settings.checkpoint is None:
            return None
        own = self.settings.checkpoint.of_member(self.number, self.seed, self.recipe.members)
        return Checkpoint(own.path, own.fingerprint)

    def _warn_if_unfinished(self, outcome: OptimisationResult, what: str) -> None:
        if not outcome.converged and not outcome.stopped:
            warn_user(f"{what}: {outcome.reason}", ConvergenceWarning)


def pretraining_epochs(max_iter: int) -> int:
    """Epochs on squared error before ``max_iter`` on the evidence, in the paper's recipe."""
    return max(1, round(_PRETRAINING_SHARE * max_iter))


def _standardise_anew(module: JointModel, source: RowSource) -> None:
    module.network.measure(raw_outputs(module.network, source).X)
    module.choose_indices()


def _reset(module: nn.Module) -> None:
    reset: Any = getattr(module, "reset_parameters", None)  # a convention of torch's layers, not an interface
    if callable(reset):
        reset()
