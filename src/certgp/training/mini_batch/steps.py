"""Training by small steps: AdamW, a warm-up and a cosine, averaged weights, and the best epoch on held-out rows."""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.engines import one_thread_below
from certgp.errors import NotPositiveDefiniteError
from certgp.training.checkpoint import Checkpoint
from certgp.training.history import STOPPED, Callback, History, Iteration, OptimisationResult, tell

_WARM_UP = 0.1  # of all steps
_FINAL_RATE = 0.01  # of the learning rate, at the end of the cosine
_MEAN_RATE = 0.5  # of the learning rate over a cosine, in which the weight decay is expressed
# an epoch on few rows has smaller batches, and passes over them several times, rather than fewer steps
_FEWEST_BATCHES, _SMALLEST_BATCH, _FEWEST_STEPS = 10, 32, 50


@dataclass(frozen=True)
class MinibatchSettings:
    """How the steps are made. Why 40 epochs: docs/decisions/0015."""

    epochs: int = 40
    batch_size: int = 250
    learning_rate: float = 4e-3  # of the network
    head_learning_rate: float = 2e-2  # of log length-scales and log variances
    shrinkage: float = 0.5  # weights would shrink by exp(-shrinkage) over the whole run if no gradient held them
    average_decay: float = 0.99  # of the moving average of the weights; 0 keeps the last weights
    refresh_every: int = 2  # epochs between two passes that make the statistics of all rows exact again
    validate_every: int = 2  # epochs
    patience: int | None = None  # validations without a better one before the run stops; None runs all epochs
    constant_rate: bool = False  # instead of warm-up and cosine
    one_pass: bool = False  # an epoch is one pass in batches of the given size, however few rows there are
    head_steps: int = 0  # steps of the head on all rows after each refresh; 0: with every step of the network
    betas: tuple[float, float] = (0.9, 0.99)  # of Adam

    def rows_per_step(self, n: int) -> int:
        """The batch size for n rows: ``batch_size``, or less where an epoch would have too few steps."""
        return min(self.batch_size, n if self.one_pass else max(_SMALLEST_BATCH, n // _FEWEST_BATCHES))

    def passes(self, batches: int) -> int:
        """How often an epoch goes through all of its batches."""
        return 1 if self.one_pass else math.ceil(_FEWEST_STEPS / batches)


class TrainedModule(nn.Module):
    """Everything that is learned, with copies of its state."""

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of all parameters and buffers, for ``restore``."""
        return {name: tensor.detach().clone() for name, tensor in self.state_dict().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a snapshot."""
        self.load_state_dict(state)


class MinibatchTask(ABC):
    """What is minimised: a module, how a chunk of rows pulls at it, and how good it is on held-out rows."""

    module: TrainedModule
    n_rows: int
    rank: int

    @abstractmethod
    def network_parameters(self) -> list[nn.Parameter]:
        """Weights and biases of the network."""

    @abstractmethod
    def head_parameters(self) -> list[nn.Parameter]:
        """Few parameters with a learning rate of their own and no weight decay."""

    @abstractmethod
    def start(self) -> None:
        """Bring the head to a sensible start for the untrained network."""

    @abstractmethod
    def refresh(self, chunks: Sequence[NDArray[np.int64]]) -> None:
        """Look at all rows again; the steps until the next refresh go through these chunks of row positions."""

    @abstractmethod
    def step(self, index: int) -> float:
        """Leave the gradient of the objective per row in the parameters' ``grad``, as seen from one chunk."""

    @abstractmethod
    def step_of_head(self) -> None:
        """Leave the gradient by all rows of the head's parameters in their ``grad``, with the network held."""

    @abstractmethod
    def constrain(self) -> None:
        """Bring parameters that a step carried out of their bounds back."""

    @abstractmethod
    def validate(self, module: TrainedModule) -> float | None:
        """Score of a module on held-out rows, lower is better; None where there are none."""


def train_minibatches(
    task: MinibatchTask,
    settings: MinibatchSettings,
    *,
    seed: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    started: float | None = None,
    offset: int = 0,
    begin: Callable[[Callable[[], dict[str, Tensor]]], None] | None = None,
    is_up: Callable[[], bool] = lambda: False,
) -> OptimisationResult:
    """Run the epochs and leave the best averaged weights in the task's module.

    ``begin`` is called before the first epoch with a function that gives the state that the module would be left in if
    the run ended now. ``is_up`` is asked before every step whether the run must end.

    What happens in epoch e depends on ``seed`` and e alone, so a run that was interrupted and goes on from its
    checkpoint ends at the same weights, bit for bit.
    """
    run = _Run(task, settings, seed, time.perf_counter() if started is None else started, offset, is_up)
    if checkpoint is None or not run.resume(checkpoint):
        task.start()
        run.average = _MovingAverage(task.module)
        run.best_state = run.average.module.snapshot()
    if begin is not None:
        begin(run.best)
    while run.epoch < settings.epochs and run.reason is None:
        run.run_epoch(callbacks)
        # in between, the coming steps would depend on statistics that a checkpoint does not hold
        whole = run.epoch % settings.refresh_every == 0 or run.epoch == settings.epochs
        if checkpoint is not None and whole and not run.stopped:
            run.write(checkpoint)
    return run.finish()


class _Run:
    """The state of a training run between two epochs."""

    def __init__(
        self,
        task: MinibatchTask,
        settings: MinibatchSettings,
        seed: int,
        started: float,
        offset: int,
        is_up: Callable[[], bool],
    ) -> None:
        self.is_up = is_up
        self.task, self.settings, self.seed, self.started, self.offset = task, settings, seed, started, offset
        self.batches = math.ceil(task.n_rows / settings.rows_per_step(task.n_rows))
        self.passes = settings.passes(self.batches)
        self.total_steps = self.batches * self.passes * settings.epochs
        self.optimiser = _optimiser(task, settings, self.total_steps)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]
        self.average = _MovingAverage(task.module)
        self.best_state: dict[str, Tensor] = {}
        self.best_score, self.best_epoch, self.since_best = math.inf, 0, 0
        self.epoch = self.step = 0
        self.history: list[Iteration] = []
        self.reason: str | None = None
        self.stopped = False

    def run_epoch(self, callbacks: Sequence[Callback]) -> None:
        rng = np.random.default_rng([self.seed, self.epoch])
        self.task.module.train()
        try:
            with torch.random.fork_rng(devices=[]):  # modules with dropout draw from torch's global generator
                torch.manual_seed(int(rng.integers(2**31)))
                value = self._run_steps(rng)
        except NotPositiveDefiniteError:
            value = math.nan
        self.epoch += 1
        if not math.isfinite(value):
            self.reason = f"the objective left the finite numbers in epoch {self.epoch}; lower learning_rate"
            return
        last = self.epoch == self.settings.epochs
        validation = self._validate(last) if last or self.epoch % self.settings.validate_every == 0 else None
        self._record(value, validation, callbacks)

    def _run_steps(self, rng: np.random.Generator) -> float:
        task, value = self.task, math.nan
        if self.epoch % self.settings.refresh_every == 0:
            task.refresh(np.array_split(rng.permutation(task.n_rows), self.batches))
            for _ in range(self.settings.head_steps):
                self.optimiser.zero_grad(set_to_none=True)
                task.step_of_head()
                self.optimiser.step()  # parameters without a gradient stay
                task.constrain()
            task.module.train()
        with one_thread_below(self.settings.batch_size):
            for index in np.concatenate([rng.permutation(self.batches) for _ in range(self.passes)]):
                factor = 1.0 if self.settings.constant_rate else rate_factor(self.step, self.total_steps)
                for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
                    group["lr"] = rate * factor
                self.optimiser.zero_grad(set_to_none=True)
                if self.is_up() and math.isfinite(value):  # at least one step, so that there is a value to tell
                    self.stopped, self.reason = True, STOPPED
                    break
                value = task.step(int(index))
                if not math.isfinite(value):
                    return value
                self.optimiser.step()
                task.constrain()
                self.step += 1
                self.average.update(min(self.settings.average_decay, self.step / (9 + self.step)))
        return value

    def _validate(self, last: bool) -> float | None:
        average = self.average.finish()
        score = self.task.validate(average)
        if score is None:
            self.best_state, self.best_epoch = average.snapshot(), self.epoch
        elif score < self.best_score:
            self.best_score, self.best_epoch, self.since_best = score, self.epoch, 0
            self.best_state = average.snapshot()
        else:
            self.since_best += 1
            if self.settings.patience is not None and self.since_best >= self.settings.patience and not last:
                self.reason = f"no better epoch than {self.best_epoch} in {self.since_best} validations"
        return score

    def _record(self, value: float, validation: float | None, callbacks: Sequence[Callback]) -> None:
        norms = [p.grad.norm().double() for p in self.task.module.parameters() if p.grad is not None]
        record = Iteration(
            self.offset + self.epoch,
            value,
            float(torch.stack(norms).norm()) if norms else 0.0,
            time.perf_counter() - self.started,
            self.task.rank,
            validation,
            rows=self.task.n_rows,
            stage="training",
            most=int(self.offset + self.settings.epochs),
        )
        self.history.append(record)
        if tell(callbacks, record):
            self.stopped, self.reason = True, STOPPED

    def best(self) -> dict[str, Tensor]:
        """The weights to keep: the average of the best epoch, or the present one before any validation."""
        if not math.isfinite(self.best_score) and self.epoch > self.best_epoch:
            return self.average.finish().snapshot()
        return self.best_state

    def finish(self) -> OptimisationResult:
        """Leave the best weights in the module and say what happened."""
        failed = self.reason is not None and "lower learning_rate" in self.reason
        self.task.module.restore(self.best_state if failed else self.best())
        self.task.module.eval()
        done = f"all {self.epoch} epochs were run"
        chosen = "" if math.isinf(self.best_score) else f"; epoch {self.best_epoch} was the best on held-out rows"
        history = History(tuple(self.history))
        score = (
            self.best_score if math.isfinite(self.best_score) else (history.values[-1] if len(history) else math.nan)
        )
        return OptimisationResult(
            np.zeros(0),
            float(score),
            len(history),
            not (failed or self.stopped),
            (self.reason or done) + chosen,
            self.stopped,
            history,
        )

    def write(self, checkpoint: Checkpoint) -> None:
        """All that the coming epochs depend on."""
        tensors: dict[str, Tensor] = {}
        parts = {
            "module": self.task.module.snapshot(),
            "average": self.average.module.snapshot(),
            "best": self.best_state,
        }
        for part, state in parts.items():
            tensors |= {f"{part}.{name}": tensor for name, tensor in state.items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": tensor for name, tensor in state.items()}
        values = {name: getattr(self, name) for name in _RESUMED}
        checkpoint.write(tensors, values | {"history": [asdict(record) for record in self.history]})

    def resume(self, checkpoint: Checkpoint) -> bool:
        """Continue where a checkpoint left off; False where there is none."""
        found = checkpoint.read()
        if found is None:
            return False
        tensors, values = found
        self.task.module.restore(_select_part(tensors, "module"))
        self.average = _MovingAverage(self.task.module)
        self.average.module.restore(_select_part(tensors, "average"))
        self.best_state = _select_part(tensors, "best")
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _select_part(tensors, "optimiser").items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = tensor
        self.optimiser.load_state_dict({"state": state, "param_groups": self.optimiser.state_dict()["param_groups"]})
        for name in _RESUMED:
            setattr(self, name, values[name])
        self.history = [Iteration(**record) for record in values["history"]]
        return True


_RESUMED = ("epoch", "step", "best_score", "best_epoch", "since_best", "reason", "stopped")


def _select_part(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def rate_factor(step: int, total: int) -> float:
    """Share of the learning rate at a step: a linear warm-up, then a cosine from 1 to a hundredth."""
    warm = max(1, int(_WARM_UP * total))
    cosine = 0.5 * (1.0 + math.cos(math.pi * max(0, step - warm) / max(1, total - warm)))
    return min((step + 1) / warm, 1.0) * (_FINAL_RATE + (1.0 - _FINAL_RATE) * cosine)


def _optimiser(task: MinibatchTask, settings: MinibatchSettings, steps: int) -> torch.optim.Optimizer:
    """AdamW [Loshchilov & Hutter 2019] with decay on weight matrices alone.

    The decay is shrinkage / (mean learning rate x steps): the total shrinkage is the same for every number of rows.
    """
    rate = settings.learning_rate
    decay = settings.shrinkage / (_MEAN_RATE * rate * max(1, steps))
    network = task.network_parameters()
    groups: list[dict[str, Any]] = [
        {"params": [p for p in network if p.ndim > 1], "lr": rate, "weight_decay": decay},
        {"params": [p for p in network if p.ndim <= 1], "lr": rate, "weight_decay": 0.0},
        {"params": task.head_parameters(), "lr": settings.head_learning_rate, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], betas=settings.betas, fused=True)


class _MovingAverage:
    """average <- decay average + (1 - decay) module, over the parameters of a module that is being trained."""

    def __init__(self, followed: TrainedModule) -> None:
        self.module = copy.deepcopy(followed)
        self._followed = followed
        pairs = list(zip(self.module.parameters(), followed.parameters(), strict=True))
        self._groups = [
            ([a.data for a, _ in pairs if a.dtype == dtype], [b.data for _, b in pairs if b.dtype == dtype])
            for dtype in {a.dtype for a, _ in pairs}  # the fused operation takes one type at a time
        ]

    def update(self, decay: float) -> None:
        """Take in the weights after a step."""
        for mine, theirs in self._groups:
            torch._foreach_lerp_(mine, theirs, 1.0 - decay)

    def finish(self) -> TrainedModule:
        """The averaged module in eval mode; its buffers (of batch norm, say) are those of the module it follows."""
        for mine, theirs in zip(self.module.buffers(), self._followed.buffers(), strict=True):
            mine.copy_(theirs)
        self.module.eval()
        return self.module
