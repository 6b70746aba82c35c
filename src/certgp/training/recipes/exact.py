"""How an exact GP is trained: starting length-scales scanned on some rows, then L-BFGS on all."""

from __future__ import annotations

import numpy as np
import torch

from certgp.data import Chunk, RowSource, target_is_constant
from certgp.errors import ConvergenceWarning, warn_user
from certgp.gp import ExactProcess
from certgp.gp.exact import check_exact_memory
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import ExactObjective
from certgp.training.full_batch.start import choose_exact_starting_scale
from certgp.training.history import OptimisationResult
from certgp.training.recipes.settings import Start
from certgp.training.recipes.trainer import Fit, Trainer

_SCAN_ROWS = 1_000


class ExactTrainer(Trainer):
    """Dense linear algebra on all rows: O(N^3) an iteration."""

    def fit(self, source: RowSource, rank: int) -> Fit:
        """Train; the rank is the number of rows."""
        return self.fit_at(source, source.n_rows)

    def fit_at(self, source: RowSource, rank: int) -> Fit:
        check_exact_memory(source.n_rows)
        start = self.settings.start(float(np.sqrt(source.n_columns)))
        rows = source.take(slice(None))
        if not self.settings.optimize or target_is_constant(source):
            process = ExactProcess(start.kernel, rows.X, rows.y, start.noise_variance)
            return Fit(process, OptimisationResult.none())
        return self._train(rows, start)

    def _train(self, rows: Chunk, start: Start) -> Fit:
        objective = _objective(rows, start)
        if not self.settings.lengths_are_given:
            self._scan(objective, rows, start)
        settings = self.settings
        outcome = minimise(objective, max_iter=settings.max_iter, rank=len(rows.y), callbacks=settings.observers)
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        kernel, noise = objective.solution()
        return Fit(ExactProcess(kernel, rows.X, rows.y, noise), outcome)

    def _scan(self, objective: ExactObjective, rows: Chunk, start: Start) -> None:
        """Find starting length-scales, on some of the rows where there are many."""
        order = self.settings.new_generator().permutation(len(rows.y))
        pick = torch.from_numpy(np.sort(order[:_SCAN_ROWS]))
        some = _objective(Chunk(rows.X[pick], rows.y[pick]), start)
        choose_exact_starting_scale(some)
        objective.parameters.set(some.parameters.get())


def _objective(rows: Chunk, start: Start) -> ExactObjective:
    ratio = start.noise_variance / float(start.kernel.signal_variance)
    return ExactObjective(start.kernel, rows, ratio)
