"""How an exact GP is trained: by dense linear algebra on all rows, or by its near rows and an iterative solve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from certgp.checks import check_choice, check_positive
from certgp.data import Chunk, RowSource, target_is_constant
from certgp.errors import ConvergenceWarning, warn_user
from certgp.gp import ExactProcess
from certgp.gp.exact import check_exact_memory, fits_in_memory
from certgp.kernels import Kernel
from certgp.training.evaluation_log import keep_if, open_log
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import ExactObjective
from certgp.training.full_batch.start import choose_exact_starting_scale
from certgp.training.history import OptimisationResult
from certgp.training.recipes.iterative import fit_iteratively
from certgp.training.recipes.settings import AUTOMATIC, Settings, Start
from certgp.training.recipes.trainer import Fit, Trainer

SOLVERS = (AUTOMATIC, "dense", "iterative")
_SCAN_ROWS = 1_000
_SUBSET_ITERATIONS = 40  # of an exact fit to some rows, beside near rows
_SECONDS_PER_CUBE = 2e-11  # of rows, for an iteration of those allowed; few of them are needed
_SECONDS_PER_COORDINATE = 2e-10  # of a distance, for each pair of rows and each part of the kernel; likewise
_COORDINATES_PER_VALUE = 20  # what a value of the kernel costs beside its distance
_DENSE_ROWS = 10_000  # up to which solver="auto" is dense: O(N^3) an iteration


class ExactTrainer(Trainer):
    """Dense linear algebra on all rows, O(N^3) an iteration; or conjugate gradients on the kernel matrix, O(N^2) a step
    and O(N) memory, at hyper-parameters that near rows choose.
    """

    def __init__(self, settings: Settings, solver: str = AUTOMATIC, tolerance: float = 0.01) -> None:
        super().__init__(settings)
        self._solver = check_choice("solver", solver, SOLVERS)
        self._tolerance = check_positive("tolerance", tolerance)
        self._unfinished: Callable[[], ExactProcess] | None = None

    def fit(self, source: RowSource, rank: int) -> Fit:
        """Train; the rank is the number of rows."""
        return self.fit_at(source, source.n_rows)

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        if self._is_dense(source.n_rows):
            check_exact_memory(source.n_rows)
            return self._fit_densely(source)
        quiet = ExactTrainer(self.settings.quiet(min(self.settings.max_iter, _SUBSET_ITERATIONS)), "dense")
        return fit_iteratively(self.settings, source, self._tolerance, quiet.train)

    def process_so_far(self) -> ExactProcess | None:
        return None if self._unfinished is None else self._unfinished()

    def estimate_seconds(self, n_rows: int, n_columns: int, rank: int) -> float:
        coordinates = (n_columns + _COORDINATES_PER_VALUE) * _count_parts(self.settings.kernel_object())
        per_pair = _SECONDS_PER_CUBE * n_rows + _SECONDS_PER_COORDINATE * coordinates
        return self.settings.max_iter * n_rows**2 * per_pair

    def _is_dense(self, n: int) -> bool:
        if self._solver == AUTOMATIC:
            return n <= _DENSE_ROWS and fits_in_memory(n)
        return self._solver == "dense"

    def _fit_densely(self, source: RowSource) -> Fit:
        rows = source.take(slice(None))
        if not self.settings.optimize or target_is_constant(source):
            start = self._start(rows)
            process = ExactProcess(start.kernel, rows.X, rows.y, start.noise_variance, rows.weight)
            return Fit(process, OptimisationResult.none())
        fit = self.train(rows)
        if not fit.outcome.converged and not fit.outcome.stopped:
            warn_user(f"the fit stopped before it converged: {fit.outcome.reason}", ConvergenceWarning)
        return fit

    def _start(self, rows: Chunk) -> Start:
        return self.settings.start(float(np.sqrt(rows.X.shape[1])))

    def train(self, rows: Chunk) -> Fit:
        """Hyper-parameters by the exact likelihood of these rows."""
        start = self._start(rows)
        objective = _objective(rows, start)
        if not self.settings.lengths_are_given:
            self._scan(objective, rows, start)
        settings = self.settings

        def process() -> ExactProcess:
            kernel, noise = objective.solution()
            return ExactProcess(kernel, rows.X, rows.y, noise, rows.weight)

        self._unfinished = process
        with open_log(settings.checkpoint, 0) as log:
            outcome = minimise(
                objective,
                max_iter=settings.max_iter,
                rank=len(rows.y),
                callbacks=settings.observers,
                log=log,
                rows=len(rows.y),
            )
            keep_if(settings.put_off, log)
        self._unfinished = None
        return Fit(process(), outcome)

    def _scan(self, objective: ExactObjective, rows: Chunk, start: Start) -> None:
        """Find starting length-scales, on some of the rows where there are many."""
        order = self.settings.new_generator().permutation(len(rows.y))
        pick = torch.from_numpy(np.sort(order[:_SCAN_ROWS]))
        some = _objective(rows.pick(pick), start)
        choose_exact_starting_scale(some)
        objective.parameters.set(some.parameters.get())


def _objective(rows: Chunk, start: Start) -> ExactObjective:
    ratio = start.noise_variance / float(start.kernel.signal_variance)
    return ExactObjective(start.kernel, rows, ratio)


def _count_parts(kernel: Kernel) -> int:
    """How many kernels a sum or product is made of; 1 for any other."""
    return sum(_count_parts(each) for each in kernel.parts.values()) or 1
