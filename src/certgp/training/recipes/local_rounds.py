"""The rounds of a local fit: fresh rows given their neighbours, a map where held-out rows want it, then the noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.checks import check_choice, check_count
from certgp.data import Chunk
from certgp.gp.conditionals import is_radial
from certgp.kernels import Kernel
from certgp.training.evaluation_log import EvaluationLog, recorded
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import Objective
from certgp.training.full_batch.start import scan_length_scales
from certgp.training.full_batch.trials import Trial
from certgp.training.history import History, Iteration, tell
from certgp.training.local import (
    FullScaleObjective,
    LinearMetric,
    LocalObjective,
    LowRankPart,
    Metric,
    NetworkMetric,
    ScaledMetric,
    SignalPrior,
    TargetRows,
    fit_noise,
    pick_earlier,
    pick_targets,
    profiled_loss,
    row_losses,
    train_network,
)
from certgp.training.recipes.local_progress import GAIN, Progress
from certgp.training.recipes.settings import Settings, Start

METRICS = ("auto", "ard", "linear", "network")
_ROUND_ROWS, _ROUND_ITERATIONS, _ROUNDS, _TRIAL_ROUNDS = 2_000, 15, 4, 2
_MAP_ROWS, _MAP_ITERATIONS, _MAP_ROUNDS, _MAP_COLUMNS = 10_000, 10, 4, 20
_EPOCHS, _EPOCH_ROWS = 20, 8_192
_LOW_RANK_ROUNDS, _LOW_RANK_ROWS = 2, 4_000
_RATIOS = (0.01, 0.3, 10.0)  # of noise to signal, of which the best counts for a factor
_FACTORS = (1.0, 0.3, 0.1, 0.03, 0.01, 3.0, 10.0)  # of the starting length-scales
_JUDGES, _JUDGE_SHARE, _FEWEST_ROWS_TO_JUDGE = 3_000, 0.1, 500
_MAP_GAIN = 0.003  # nats per judge, below which the map is not trained further
_STANDARD_ERRORS = 2.0  # by which held-out rows must prefer a learned map
_PROBE_ROWS, _FEWEST_ROWS = 500, 500  # that are timed, and that the noise is learned from at least
_NOISE_EVALUATIONS, _NOISE_SHARE = 30, 0.35  # of all rows, and of the time that is left
_SCAN_EVALUATIONS, _SCAN_SHARE = 50, 0.15
NOISE_ROWS = 8_000  # that signal variance and noise are learned from


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


def scaled_metric(start: Start, dimension: int) -> ScaledMetric:
    """A kernel at its starting values, with a length-scale for each column."""
    return ScaledMetric(start.kernel, dimension, start.noise_variance / float(start.kernel.signal_variance))


def takes_a_map(kernel: Kernel) -> bool:
    """Does it depend on one distance over all columns?"""
    return is_radial(kernel) and kernel.columns is None


@dataclass(eq=False)
class LocalTraining:
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
        self.prior = SignalPrior.of(self.rows.y)

    def run(self, starts: list[Start]) -> Metric:
        """The metric and the variances that these rows want."""
        metric = self._choose_kernel(starts)
        self._rounds(metric, _ROUNDS - _TRIAL_ROUNDS, _ROUND_ROWS, _ROUND_ITERATIONS, "length-scales")
        self._fit_noise(metric)
        if self.recipe.metric == "ard" or self.progress.stopped or not takes_a_map(metric.kernel):
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
            metric = scaled_metric(start, self.rows.X.shape[1])
            self.metric = metric if best is None else best  # until held-out rows prefer another
            self.rng = np.random.default_rng(seed)
            if not self.settings.lengths_are_given:
                self._scan(metric)
            value = self._rounds(metric, _TRIAL_ROUNDS, _ROUND_ROWS, _ROUND_ITERATIONS, start.kernel.name)
            if self.progress.stopped:
                return metric if best is None else best
            if len(starts) > 1:
                self._fit_noise(metric, NOISE_ROWS // 2)
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
            return min(profiled_loss(metric, data, ratio, self.prior)[0] for ratio in _RATIOS)

        before = loss()
        scan_length_scales(metric.lengths(), loss, _FACTORS)
        if loss() > before - GAIN:  # very short length-scales are noise by another name
            metric.load_state_dict(start)

    def _rounds(self, metric: Metric, rounds: int, rows: int, iterations: int, stage: str) -> float:
        """Optimise on fresh rows and their neighbours in the metric of the moment, again and again."""

        def objective() -> LocalObjective:
            return LocalObjective(metric, self._fresh(metric, rows), self.prior)

        return self._optimise(rounds, iterations, stage, objective)

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
        fit_noise(metric, recorded(self._open_log, objective(NOISE_ROWS).profiled))

    def _fresh(self, metric: Metric, rows: int) -> TargetRows:
        """Rows that are drawn anew, none of them a judge, with their neighbours."""
        targets = np.sort(self.rng.choice(self.pool, min(rows, len(self.pool)), replace=False))
        return pick_targets(metric, self.rows, targets, self.recipe.train_neighbours)

    def _fit_noise(self, metric: Metric, rows: int = NOISE_ROWS) -> None:
        wanted = min(rows, len(self.pool))
        rows = self._affordable(metric, wanted, _NOISE_EVALUATIONS, _NOISE_SHARE)
        if rows < wanted:
            self.settings.tell_cut("variances", f"variances are from {rows:,} rows instead of {wanted:,}")
        profiled = partial(profiled_loss, metric, self._fresh(metric, rows), prior=self.prior)
        fit_noise(metric, recorded(self._open_log, profiled))

    @property
    def _open_log(self) -> EvaluationLog | None:
        """What follows a stop is no part of the fit that goes on later."""
        return None if self.progress.stopped else self.log

    def _affordable(self, metric: Metric, rows: int, evaluations: int, share: float) -> int:
        """So many rows, or as many as can be looked at so often within a share of the time left: some are timed.

        A checkpoint replays evaluations, which then must not depend on the clock.
        """
        left = self.settings.seconds_left()
        if math.isinf(left) or self._open_log is not None or rows <= _FEWEST_ROWS:
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
