"""How a local GP is trained: rounds of fresh rows given their neighbours, then the noise on many rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.checks import check_choice, check_count
from certgp.data import Chunk, RowSource, target_is_constant
from certgp.errors import ConvergenceWarning, InvalidInputError, warn_user
from certgp.features import NystromMap, greedy_rows
from certgp.gp import FullScaleProcess, LocalProcess
from certgp.gp.conditionals import is_radial
from certgp.kernels import Kernel
from certgp.training.evaluation_log import EvaluationLog, keep_if, open_log, recorded
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import Objective
from certgp.training.full_batch.start import scan_length_scales
from certgp.training.full_batch.trials import Trial
from certgp.training.history import History, Iteration, OptimisationResult, tell
from certgp.training.local import (
    JITTER,
    FullScaleObjective,
    LinearMetric,
    LocalObjective,
    LowRankPart,
    Metric,
    NetworkMetric,
    ScaledMetric,
    TargetRows,
    fit_noise,
    pick_earlier,
    pick_targets,
    profiled_loss,
    row_losses,
    train_network,
)
from certgp.training.noise import MOST_ROWS
from certgp.training.recipes.local_progress import GAIN, Progress, outcome_of
from certgp.training.recipes.settings import AUTOMATIC, Settings, Start
from certgp.training.recipes.trainer import Fit, Trainer

METRICS = ("auto", "ard", "linear", "network")
KERNELS = ("matern12", "matern32", "matern52")  # what kernel="auto" chooses from
_ROUND_ROWS, _ROUND_ITERATIONS, _ROUNDS, _TRIAL_ROUNDS = 2_000, 15, 4, 2
_MAP_ROWS, _MAP_ITERATIONS, _MAP_ROUNDS, _MAP_COLUMNS = 10_000, 10, 4, 20
_EPOCHS, _EPOCH_ROWS = 20, 8_192
_NOISE_ROWS = 8_000
# about what a fit takes: its rounds look at a limited number of rows
_SECONDS, _SECONDS_FOR_ROUNDS, _SECONDS_PER_ROW, _SECONDS_PER_NEIGHBOURHOOD = 0.5, 12.0, 5e-5, 5e-4
_USUAL_ITERATIONS, _ROWS_AT_A_TIME = 150, 4_000
_LOW_RANK_ROUNDS, _LOW_RANK_ROWS = 2, 4_000
_CENTRE_ROWS = 3_000  # that inducing points are chosen from
_RATIOS = (0.01, 0.3, 10.0)  # of noise to signal, of which the best counts for a factor
_FACTORS = (1.0, 0.3, 0.1, 0.03, 0.01, 3.0, 10.0)  # of the starting length-scales
_DEFAULT_KERNEL, _FEWEST_ITERATIONS_TO_CHOOSE = "matern32", 120
_JUDGES, _JUDGE_SHARE, _FEWEST_ROWS_TO_JUDGE = 3_000, 0.1, 500
_MAP_GAIN = 0.003  # nats per judge, below which the map is not trained further
_STANDARD_ERRORS = 2.0  # by which held-out rows must prefer a learned map
_MOST_RESERVED = 0.45  # of a time limit for what follows training: fewer rows then decide on the noise
_PROBE_ROWS, _FEWEST_ROWS = 500, 500  # that are timed, and that the noise is learned from at least
_NOISE_EVALUATIONS, _NOISE_SHARE = 30, 0.35  # of all rows, and of the time that is left
_SCAN_EVALUATIONS, _SCAN_SHARE = 50, 0.15


@dataclass(frozen=True)
class LocalRecipe:
    """How many neighbours, and what is learned of the metric; making one refuses what cannot work."""

    neighbours: int
    train_neighbours: int
    metric: str
    rank: int = 0  # features beside the neighbours
    hidden: tuple[int, ...] = (128, 64)

    def __post_init__(self) -> None:
        check_count("rank", self.rank, least=0)
        least = 0 if self.rank else 1
        check_count("neighbours", self.neighbours, least)
        check_count("train_neighbours", self.train_neighbours, least)
        check_choice("metric", self.metric, METRICS)


class LocalTrainer(Trainer):
    """Length-scales by the likelihood of some rows given their neighbours, a linear map where held-out rows want it."""

    most_reserved = _MOST_RESERVED

    def __init__(self, recipe: LocalRecipe, settings: Settings) -> None:
        super().__init__(settings)
        self._recipe = recipe
        self._unfinished: Callable[[], LocalProcess | FullScaleProcess | None] | None = None
        for kernel in self._kernels():
            given = replace(settings, kernel=kernel).kernel_object()
            if recipe.metric in ("linear", "network") and not _takes_a_map(given):
                raise InvalidInputError(
                    f"metric={recipe.metric!r} needs a kernel that depends on one distance over all columns, such as "
                    f"'matern32'; the {given.name} kernel does not. Use metric='ard'"
                )

    def fit(self, source: RowSource, rank: int) -> Fit:
        return self.fit_at(source, source.n_rows)

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        rng = self.settings.new_generator()
        order = rng.permutation(source.n_rows)
        read, starts = source.take(slice(None)), self._starts(source.n_columns)
        rows = read.to(torch.float64)
        if not self.settings.optimize or target_is_constant(source):
            metric: Metric = _scaled(starts[0], source.n_columns)
            return Fit(self._process(metric, _in_order(rows, order)), OptimisationResult.none())
        progress, ordered = Progress(time.perf_counter()), _in_order(rows, order)
        with open_log(self.settings.checkpoint, rank) as log:
            training = _Training(self._recipe, self.settings, rows, rng, progress, log)
            self._unfinished = lambda: None if training.metric is None else self._process(training.metric, ordered)
            metric = training.run(starts)
            self._unfinished = lambda: self._process(metric, ordered)
            centres = _centres(metric, ordered, self._recipe.rank)
            if self._recipe.rank and not progress.stopped:
                training.fit_low_rank(metric, ordered, centres)
            keep_if(self.settings.put_off, log)
        self._unfinished = None
        outcome = outcome_of(progress, self.settings.max_iter)
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        return Fit(self._process(metric, ordered, centres), outcome, tuple(progress.trials))

    def process_so_far(self) -> LocalProcess | FullScaleProcess | None:
        return None if self._unfinished is None else self._unfinished()

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        share = min(1.0, self.settings.max_iter / _USUAL_ITERATIONS) * min(1.0, n_rows / _ROWS_AT_A_TIME)
        noise = _SECONDS_PER_NEIGHBOURHOOD * min(n_rows, MOST_ROWS)
        return _SECONDS + _SECONDS_FOR_ROUNDS * share + noise + _SECONDS_PER_ROW * n_rows

    def seconds_after_training(self, n_rows: int, n_columns: int) -> float:
        looked_at = min(n_rows, _NOISE_ROWS) + (min(n_rows, MOST_ROWS) if self.settings.tries_input_noise else 0)
        return _SECONDS_PER_NEIGHBOURHOOD * looked_at + super().seconds_after_training(n_rows, n_columns)

    def _kernels(self) -> tuple[str | Kernel, ...]:
        """The kernels to choose from."""
        if self.settings.kernel != AUTOMATIC:
            return (self.settings.kernel,)
        can_choose = self.settings.optimize and self.settings.max_iter >= _FEWEST_ITERATIONS_TO_CHOOSE
        return KERNELS if can_choose else (_DEFAULT_KERNEL,)

    def _starts(self, dimension: int) -> list[Start]:
        """The kernels at their starting values."""
        return [replace(self.settings, kernel=each).start(math.sqrt(dimension)) for each in self._kernels()]

    def _process(self, metric: Metric, rows: Chunk, centres: Tensor | None = None) -> LocalProcess | FullScaleProcess:
        """The process of all rows, in random order, with inducing points at the images of the centres."""
        recipe, (transform, kernel) = self._recipe, metric.result()
        sizes, noise = (recipe.neighbours, recipe.train_neighbours), metric.signal * metric.ratio
        local = LocalProcess(transform, kernel, rows.X, rows.y, noise, *sizes, weight=rows.weight)
        if not recipe.rank:
            return local
        points = local.transform(_centres(metric, rows, recipe.rank) if centres is None else centres)
        return FullScaleProcess(local, NystromMap(kernel.with_signal_variance(1.0), points, jitter=JITTER))


def _in_order(rows: Chunk, order: NDArray[np.int64]) -> Chunk:
    return rows.pick(torch.from_numpy(order))


@torch.no_grad()
def _centres(metric: Metric, rows: Chunk, rank: int) -> Tensor:
    """Rows (r, D) for inducing points, of the first of rows in random order: the metric of the moment chooses."""
    some = rows.X[: _CENTRE_ROWS if rank else 0]
    return some[greedy_rows(metric.kernel, metric(some), min(rank, len(some)))]


def _scaled(start: Start, dimension: int) -> ScaledMetric:
    return ScaledMetric(start.kernel, dimension, start.noise_variance / float(start.kernel.signal_variance))


def _takes_a_map(kernel: Kernel) -> bool:
    return is_radial(kernel) and kernel.columns is None


@dataclass(eq=False)
class _Training:
    """One fit on rows in memory."""

    recipe: LocalRecipe
    settings: Settings
    rows: Chunk
    rng: np.random.Generator
    progress: Progress
    log: EvaluationLog | None = None

    def __post_init__(self) -> None:
        n = len(self.rows.y)
        shuffled = self.rng.permutation(n)
        count = min(_JUDGES, round(_JUDGE_SHARE * n)) if n >= _FEWEST_ROWS_TO_JUDGE else 0
        # with few rows all of them judge: their own targets never enter their predictions
        self.judges = np.sort(shuffled[:count]) if count else np.arange(n)
        self.pool = np.sort(shuffled[count:])
        self.has_judges = count > 0
        self.metric: Metric | None = None  # the best so far

    def run(self, starts: list[Start]) -> Metric:
        """The metric and the variances that these rows want."""
        metric = self._choose_kernel(starts)
        self._rounds(metric, _ROUNDS - _TRIAL_ROUNDS, _ROUND_ROWS, _ROUND_ITERATIONS, "length-scales")
        self._fit_noise(metric)
        if self.recipe.metric == "ard" or self.progress.stopped or not _takes_a_map(metric.kernel):
            return metric
        if self.settings.is_up():
            self.progress.stopped = True
            return metric
        if self.recipe.metric == "auto" and (not self.has_judges or self.rows.X.shape[1] < 2):
            return metric
        mapped = self._learn_map(metric)
        return self._learn_network(mapped) if self.recipe.metric == "network" and not self.progress.stopped else mapped

    def _choose_kernel(self, starts: list[Start]) -> Metric:
        """Two rounds of each kernel on the same rows; the one that held-out rows prefer goes on.

        From the roughest kernel on, until the next smoother one is worse.
        """
        best, least = None, math.inf
        seed = int(self.rng.integers(2**31))
        for start in starts:
            began = time.perf_counter()
            metric = _scaled(start, self.rows.X.shape[1])
            self.metric = metric if best is None else best  # until held-out rows prefer another
            self.rng = np.random.default_rng(seed)
            if not self.settings.lengths_are_given:
                self._scan(metric)
            value = self._rounds(metric, _TRIAL_ROUNDS, _ROUND_ROWS, _ROUND_ITERATIONS, start.kernel.name)
            if self.progress.stopped:
                return metric if best is None else best
            if len(starts) > 1:
                self._fit_noise(metric, _NOISE_ROWS // 2)
            loss = self._judge(metric).mean() if len(starts) > 1 else value
            if len(starts) > 1:
                self.progress.trials.append(Trial(start.kernel.name, value, float(loss), time.perf_counter() - began))
            if best is not None and loss >= least:
                break
            best, least = metric, float(loss)
            self.metric = best
            # the evaluations that a checkpoint replays do not depend on the clock
            if self.log is None and not self.settings.has_time_for(time.perf_counter() - began):
                break
        assert best is not None
        return best

    def _scan(self, metric: ScaledMetric) -> None:
        """Find the scale of the length-scales: from far too long ones, gradients lead to a fit that sees noise alone.

        A common factor leaves the neighbours as they are.
        """
        rows = self._affordable(metric, _ROUND_ROWS, _SCAN_EVALUATIONS, _SCAN_SHARE)
        data, start = self._fresh(metric, rows), metric.snapshot()

        def loss() -> float:
            return min(profiled_loss(metric, data, ratio)[0] for ratio in _RATIOS)

        before = loss()
        scan_length_scales(metric.lengths(), loss, _FACTORS)
        if loss() > before - GAIN:  # very short length-scales are noise by another name
            metric.load_state_dict(start)

    def _rounds(self, metric: Metric, rounds: int, rows: int, iterations: int, stage: str) -> float:
        """Optimise on fresh rows and their neighbours in the metric of the moment, again and again."""
        return self._optimise(rounds, iterations, stage, lambda: LocalObjective(metric, self._fresh(metric, rows)))

    def _optimise(self, rounds: int, iterations: int, stage: str, new_objective: Callable[[], Objective]) -> float:
        """A few iterations on each of some objectives; the last value. Callbacks are told the ``stage``."""
        value = math.nan
        for _ in range(rounds):
            history = self.progress.history
            left = self.settings.max_iter - len(history)
            self.progress.stopped = self.progress.stopped or self.settings.is_up()
            if self.progress.stopped or left == 0:
                break
            objective = new_objective()
            before, _ = objective.evaluate(objective.start())
            for rule in self.settings.stop_rules:
                rule.start_steps()
            outcome = minimise(
                objective,
                max_iter=min(iterations, left),
                rank=len(self.rows.y),
                callbacks=self.settings.observers,
                started=self.progress.started,
                offset=len(history),
                log=self.log,
                budget=self.settings.max_iter,
                stage=stage,
            )
            value = outcome.value
            self.progress.history = history + outcome.history
            self.progress.stopped = outcome.stopped
            self.progress.gain = before - value
        return value

    def fit_low_rank(self, metric: Metric, rows: Chunk, centres: Tensor) -> None:
        """Go on from the local fit with the evidence of low rank plus local, of rows in their final order."""
        n = len(rows.y)
        low_rank = LowRankPart(centres, n)

        def objective(count: int) -> FullScaleObjective:
            targets = np.sort(self.rng.choice(n, min(count, n), replace=False))
            near = pick_earlier(metric, rows, targets, self.recipe.train_neighbours)
            return FullScaleObjective(metric, near, low_rank)

        self._optimise(_LOW_RANK_ROUNDS, _ROUND_ITERATIONS, "low rank", lambda: objective(_LOW_RANK_ROWS))
        fit_noise(metric, recorded(self.log, objective(_NOISE_ROWS).profiled))

    def _fresh(self, metric: Metric, rows: int) -> TargetRows:
        """Rows that are drawn anew, none of them a judge, with their neighbours."""
        targets = np.sort(self.rng.choice(self.pool, min(rows, len(self.pool)), replace=False))
        return pick_targets(metric, self.rows, targets, self.recipe.train_neighbours)

    def _fit_noise(self, metric: Metric, rows: int = _NOISE_ROWS) -> None:
        wanted = min(rows, len(self.pool))
        rows = self._affordable(metric, wanted, _NOISE_EVALUATIONS, _NOISE_SHARE)
        if rows < wanted:
            self.settings.tell_cut("variances", f"variances are from {rows:,} rows instead of {wanted:,}")
        # what follows a stop is no part of the fit that goes on later
        log = None if self.progress.stopped else self.log
        fit_noise(metric, recorded(log, partial(profiled_loss, metric, self._fresh(metric, rows))))

    def _affordable(self, metric: Metric, rows: int, evaluations: int, share: float) -> int:
        """So many rows, or as many as can be looked at so often within a share of the time left: some are timed.

        A checkpoint replays evaluations, which then must not depend on the clock.
        """
        left = self.settings.seconds_left()
        if math.isinf(left) or (self.log is not None and not self.progress.stopped) or rows <= _FEWEST_ROWS:
            return rows
        some = np.sort(np.random.default_rng(0).choice(self.pool, min(_PROBE_ROWS, len(self.pool)), replace=False))
        data = pick_targets(metric, self.rows, some, self.recipe.train_neighbours)
        profiled_loss(metric, data.part(slice(0, 2)), 1.0)  # compiles
        began = time.perf_counter()
        profiled_loss(metric, data, 1.0)
        each = (time.perf_counter() - began) / len(some)
        return max(_FEWEST_ROWS, min(rows, int(share * left / (each * evaluations))))

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
        for done in range(_MAP_ROUNDS):
            value = self._rounds(metric, 1, _MAP_ROWS, _MAP_ITERATIONS, "linear map")
            now = self._judge(metric)
            gain = float(losses.mean() - now.mean())
            if gain > 0.0:
                best, losses = metric.snapshot(), now
            # the first round may lose: it leaves the length-scales behind
            if self.progress.stopped or (done and gain < _MAP_GAIN):
                break
        metric.load_state_dict(best)
        self._fit_noise(metric)
        after = self._judge(metric)
        self.progress.trials.append(Trial("ard", float("nan"), float(before.mean()), 0.0))
        self.progress.trials.append(Trial("linear", value, float(after.mean()), time.perf_counter() - began))
        gains = before - after
        needed = _STANDARD_ERRORS * float(gains.std(ddof=1)) / math.sqrt(len(gains))
        return metric if self.recipe.metric == "linear" or gains.mean() > needed else scaled

    def _learn_network(self, start: Metric) -> Metric:
        """A network added to the linear map, at the epoch that held-out rows like best."""
        began, rows = time.perf_counter(), self.recipe.train_neighbours
        generator = torch.Generator().manual_seed(int(self.rng.integers(2**31)))
        kernel = start.kernel.with_signal_variance(start.signal)
        metric = NetworkMetric(kernel, start.linear_map.detach(), self.recipe.hidden, start.ratio, generator)
        best, least = metric.snapshot(), float(self._judge(start).mean())

        def after_epoch(epoch: int, value: float) -> bool:
            nonlocal best, least
            loss = float(self._judge(metric).mean())
            if loss < least:
                best, least = metric.snapshot(), loss
            history, seconds = self.progress.history, time.perf_counter() - self.progress.started
            record = Iteration(
                len(history) + 1, value, float("nan"), seconds, rows, loss, _EPOCH_ROWS, "training the network"
            )
            self.progress.history = history + History((record,))
            stop = tell(self.settings.observers, record)
            self.progress.stopped = stop
            return stop

        epochs = min(_EPOCHS, self.settings.max_iter - len(self.progress.history))
        train_network(metric, epochs, lambda: self._fresh(metric, _EPOCH_ROWS), after_epoch)
        metric.load_state_dict(best)
        self._fit_noise(metric)
        loss = float(self._judge(metric).mean())
        self.progress.trials.append(Trial("network", least, loss, time.perf_counter() - began))
        return metric
