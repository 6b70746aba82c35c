"""How a local GP is trained: rounds of fresh rows given their neighbours, then the noise on many rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Chunk, RowSource, target_is_constant
from certgp.errors import ConvergenceWarning, InvalidInputError, warn_user
from certgp.features import NystromMap, greedy_rows
from certgp.gp import FullScaleProcess, GaussianProcess, LocalProcess
from certgp.kernels import Kernel
from certgp.training.evaluation_log import keep_if, open_log
from certgp.training.history import OptimisationResult
from certgp.training.local import JITTER, Metric
from certgp.training.noise import MOST_ROWS
from certgp.training.recipes.local_progress import Progress, outcome_of
from certgp.training.recipes.local_rounds import NOISE_ROWS, LocalRecipe, LocalTraining, scaled_metric, takes_a_map
from certgp.training.recipes.settings import AUTOMATIC, Settings, Start
from certgp.training.recipes.trainer import Fit, Trainer
from certgp.transforms import Projection

KERNELS = ("matern12", "matern32", "matern52")  # what kernel="auto" chooses from
# about what a fit takes: its rounds look at a limited number of rows
_SECONDS, _SECONDS_FOR_ROUNDS, _SECONDS_PER_ROW, _SECONDS_PER_NEIGHBOURHOOD = 0.5, 12.0, 5e-5, 5e-4
_USUAL_ITERATIONS, _ROWS_AT_A_TIME = 150, 4_000
_CENTRE_ROWS = 3_000  # that inducing points are chosen from
_DEFAULT_KERNEL, _FEWEST_ITERATIONS_TO_CHOOSE = "matern32", 120
_MOST_RESERVED = 0.45  # of a time limit for what follows training: fewer rows then decide on the noise


class LocalTrainer(Trainer):
    """Length-scales by the likelihood of some rows given their neighbours, a linear map where held-out rows want it."""

    most_reserved = _MOST_RESERVED

    def __init__(self, recipe: LocalRecipe, settings: Settings) -> None:
        super().__init__(settings)
        self._recipe = recipe
        self._unfinished: Callable[[], LocalProcess | FullScaleProcess | None] | None = None
        for kernel in self._kernels():
            given = replace(settings, kernel=kernel).kernel_object()
            if recipe.metric in ("linear", "network") and not takes_a_map(given):
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
            metric: Metric = scaled_metric(starts[0], source.n_columns)
            return Fit(self._process(metric, _in_order(rows, order)), OptimisationResult.none())
        progress, ordered = Progress(time.perf_counter()), _in_order(rows, order)
        with open_log(self.settings.checkpoint, rank) as log:
            training = LocalTraining(self._recipe, self.settings, rows, rng, progress, log)
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

    def with_choices_of(self, process: GaussianProcess) -> LocalTrainer:
        """With its kernel, and with a linear map or none as it has."""
        settings, recipe = self.settings, self._recipe
        if settings.kernel == AUTOMATIC:
            settings = replace(settings, kernel=process.kernel.name)
        if recipe.metric == AUTOMATIC:
            recipe = replace(recipe, metric="linear" if isinstance(process.transform, Projection) else "ard")
        return LocalTrainer(recipe, settings)

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        share = min(1.0, self.settings.max_iter / _USUAL_ITERATIONS) * min(1.0, n_rows / _ROWS_AT_A_TIME)
        noise = _SECONDS_PER_NEIGHBOURHOOD * min(n_rows, MOST_ROWS)
        return _SECONDS + _SECONDS_FOR_ROUNDS * share + noise + _SECONDS_PER_ROW * n_rows

    def seconds_after_training(self, n_rows: int, n_columns: int) -> float:
        looked_at = min(n_rows, NOISE_ROWS) + (min(n_rows, MOST_ROWS) if self.settings.tries_input_noise else 0)
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
