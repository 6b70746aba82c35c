"""How a local GP is trained: rounds of fresh rows given their neighbours, then the noise on many rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_choice, check_count
from certgp.data import Chunk, RowSource, target_is_constant
from certgp.errors import InvalidInputError
from certgp.gp.conditionals import is_radial
from certgp.gp.local import LocalProcess
from certgp.kernels import Kernel
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.trials import Trial
from certgp.training.history import History, OptimisationResult
from certgp.training.local import (
    LinearMetric,
    LocalObjective,
    Metric,
    ScaledMetric,
    fit_noise,
    pick_targets,
    row_losses,
)
from certgp.training.recipes.settings import AUTOMATIC, Settings
from certgp.training.recipes.trainer import Fit, Trainer

METRICS = ("auto", "ard", "linear")
KERNELS = ("matern12", "matern32", "matern52")  # what kernel="auto" chooses from
_ROUND_ROWS, _ROUND_ITERATIONS, _TRIAL_ROUNDS = 2_000, 15, 2
_MAP_ROWS, _MAP_ITERATIONS, _MAP_ROUNDS, _MAP_COLUMNS = 10_000, 10, 4, 20
_NOISE_ROWS = 8_000
_JUDGES, _JUDGE_SHARE, _FEWEST_ROWS_TO_JUDGE = 3_000, 0.1, 500
_GAIN = 0.01  # nats per row of fresh rows, below which another round is not worth it
_STANDARD_ERRORS = 2.0  # by which held-out rows must prefer a learned map


@dataclass(frozen=True)
class LocalRecipe:
    """How many neighbours, and what is learned of the metric; making one refuses what cannot work."""

    neighbours: int
    train_neighbours: int
    metric: str

    def __post_init__(self) -> None:
        check_count("neighbours", self.neighbours)
        check_count("train_neighbours", self.train_neighbours)
        check_choice("metric", self.metric, METRICS)


@dataclass(eq=False)
class _Progress:
    """What the rounds so far have done."""

    started: float
    history: History = field(default_factory=History)
    trials: list[Trial] = field(default_factory=list)
    gain: float = math.inf  # of the last round, on rows that it had not seen
    stopped: bool = False


class LocalTrainer(Trainer):
    """Length-scales by the likelihood of some rows given their neighbours, a linear map where held-out rows want it."""

    def __init__(self, recipe: LocalRecipe, settings: Settings) -> None:
        super().__init__(settings)
        self._recipe = recipe
        for kernel in self._starts(1):
            if recipe.metric == "linear" and not _takes_a_map(kernel):
                raise InvalidInputError(
                    "metric='linear' needs a kernel that depends on one distance over all columns, such as 'matern32'; "
                    f"the {kernel.name} kernel does not. Use metric='ard'"
                )

    def fit(self, source: RowSource, rank: int) -> Fit:
        return self.fit_at(source, source.n_rows)

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        rng = self.settings.new_generator()
        order = rng.permutation(source.n_rows)
        read = source.take(slice(None))
        if not self.settings.optimize or target_is_constant(source):
            start = self._starts(source.n_columns)[0]
            signal = float(start.signal_variance)
            metric: Metric = ScaledMetric(start, source.n_columns, self._start_noise() / signal)
            return Fit(self._process(metric, read, order), OptimisationResult.none())
        progress = _Progress(time.perf_counter())
        metric = _Training(self._recipe, self.settings, Chunk(read.X.double(), read.y.double()), rng, progress).run(
            self._starts(source.n_columns), self._start_noise()
        )
        return Fit(self._process(metric, read, order), _outcome(progress), tuple(progress.trials))

    def _starts(self, dimension: int) -> list[Kernel]:
        """The kernels to choose from, at their starting values."""
        settings = self.settings
        names = KERNELS if settings.kernel == AUTOMATIC else (settings.kernel,)
        if len(settings.standardiser.x_scale) == 0:  # before any rows are known
            return [replace(settings, kernel=name).start(1.0).kernel for name in names]
        return [replace(settings, kernel=name).start(math.sqrt(dimension)).kernel for name in names]

    def _start_noise(self) -> float:
        name = KERNELS[0] if self.settings.kernel == AUTOMATIC else self.settings.kernel
        return replace(self.settings, kernel=name).start(1.0).noise_variance

    def _process(self, metric: Metric, rows: Chunk, order: NDArray[np.int64]) -> LocalProcess:
        """The local process of all rows, in a random order."""
        pick = torch.from_numpy(order)
        transform, kernel = metric.result()
        noise = metric.signal * metric.ratio
        X, y = rows.X.double()[pick], rows.y.double()[pick]
        return LocalProcess(transform, kernel, X, y, noise, self._recipe.neighbours, self._recipe.train_neighbours)


def _takes_a_map(kernel: Kernel) -> bool:
    return is_radial(kernel) and kernel.columns is None


def _outcome(progress: _Progress) -> OptimisationResult:
    history = progress.history
    value = history[-1].value if len(history) else float("nan")
    converged = progress.gain < _GAIN and not progress.stopped
    reason = f"the last round improved the likelihood of its fresh rows by {max(progress.gain, 0.0):.3g} nats per row"
    if progress.stopped:
        reason = "a callback stopped the fit"
    elif not converged:
        reason += "; a larger max_iter allows more rounds"
    return OptimisationResult(np.zeros(0), value, len(history), converged, reason, progress.stopped, history)


@dataclass(eq=False)
class _Training:
    """One fit on rows in memory."""

    recipe: LocalRecipe
    settings: Settings
    rows: Chunk
    rng: np.random.Generator
    progress: _Progress

    def __post_init__(self) -> None:
        n = len(self.rows.y)
        shuffled = self.rng.permutation(n)
        count = min(_JUDGES, round(_JUDGE_SHARE * n)) if n >= _FEWEST_ROWS_TO_JUDGE else 0
        # with few rows all of them judge: their own targets never enter their predictions
        self.judges = np.sort(shuffled[:count]) if count else np.arange(n)
        self.pool = np.sort(shuffled[count:])
        self.has_judges = count > 0

    def run(self, starts: list[Kernel], noise: float) -> Metric:
        metric = self._choose_kernel(starts, noise)
        rounds = math.ceil(self.settings.max_iter / _ROUND_ITERATIONS)
        done = min(_TRIAL_ROUNDS, rounds)
        self._rounds(metric, rounds - done, _ROUND_ROWS, _ROUND_ITERATIONS)
        self._fit_noise(metric)
        if self.recipe.metric == "ard" or self.progress.stopped or not _takes_a_map(metric.kernel):
            return metric
        if self.recipe.metric == "auto" and (not self.has_judges or self.rows.X.shape[1] < 2):
            return metric
        return self._learn_map(metric)

    def _choose_kernel(self, starts: list[Kernel], noise: float) -> Metric:
        """Two rounds of each kernel on the same rows; the one that held-out rows prefer goes on.

        From the roughest kernel on, until the next smoother one is worse.
        """
        rounds = min(_TRIAL_ROUNDS, math.ceil(self.settings.max_iter / _ROUND_ITERATIONS))
        best, least = None, math.inf
        seed = int(self.rng.integers(2**31))
        for kernel in starts:
            began = time.perf_counter()
            metric = ScaledMetric(kernel, self.rows.X.shape[1], noise / float(kernel.signal_variance))
            self.rng = np.random.default_rng(seed)
            value = self._rounds(metric, rounds, _ROUND_ROWS, _ROUND_ITERATIONS)
            if len(starts) > 1:
                self._fit_noise(metric)
            loss = self._judge(metric).mean() if len(starts) > 1 else value
            if len(starts) > 1:
                self.progress.trials.append(Trial(kernel.name, value, float(loss), time.perf_counter() - began))
            if best is not None and (loss >= least or self.progress.stopped):
                break
            best, least = metric, float(loss)
        assert best is not None
        return best

    def _rounds(self, metric: Metric, rounds: int, rows: int, iterations: int) -> float:
        """Optimise on fresh rows and their neighbours in the metric of the moment, again and again."""
        value = math.nan
        for _ in range(rounds):
            if self.progress.stopped:
                break
            objective = LocalObjective(metric, self._fresh(metric, rows))
            before, _ = objective.evaluate(objective.start())
            history = self.progress.history
            outcome = minimise(
                objective,
                max_iter=iterations,
                rank=len(self.rows.y),
                callbacks=self.settings.observers,
                started=self.progress.started,
                offset=len(history),
            )
            value = outcome.value
            self.progress.history = history + outcome.history
            self.progress.stopped = outcome.stopped
            self.progress.gain = before - value
        return value

    def _fresh(self, metric: Metric, rows: int):  # type: ignore[no-untyped-def]
        targets = np.sort(self.rng.choice(self.pool, min(rows, len(self.pool)), replace=False))
        return pick_targets(metric, self.rows, targets, self.recipe.train_neighbours)

    def _fit_noise(self, metric: Metric) -> None:
        fit_noise(metric, self._fresh(metric, _NOISE_ROWS))

    def _judge(self, metric: Metric) -> NDArray[np.float64]:
        """The loss of every judge given its neighbours."""
        return row_losses(metric, pick_targets(metric, self.rows, self.judges, self.recipe.train_neighbours))

    def _learn_map(self, scaled: Metric) -> Metric:
        """A linear map from the length-scales on, as long as held-out rows gain; without a gain the scales stay."""
        began, before = time.perf_counter(), self._judge(scaled)
        kernel = scaled.result()[1]
        columns = min(_MAP_COLUMNS, self.rows.X.shape[1])
        metric = LinearMetric(kernel, kernel.values["length_scale"], columns, scaled.ratio)
        best, losses = metric.snapshot(), before
        for _ in range(min(_MAP_ROUNDS, math.ceil(self.settings.max_iter / _MAP_ITERATIONS))):
            value = self._rounds(metric, 1, _MAP_ROWS, _MAP_ITERATIONS)
            now = self._judge(metric)
            if now.mean() < losses.mean():
                best, losses = metric.snapshot(), now
            if self.progress.stopped:
                break
        metric.load_state_dict(best)
        self._fit_noise(metric)
        after = self._judge(metric)
        self.progress.trials.append(Trial("ard", float("nan"), float(before.mean()), 0.0))
        self.progress.trials.append(Trial("linear", value, float(after.mean()), time.perf_counter() - began))
        gain = before - after
        needed = _STANDARD_ERRORS * float(gain.std(ddof=1)) / math.sqrt(len(gain))
        return metric if self.recipe.metric == "linear" or gain.mean() > needed else scaled
