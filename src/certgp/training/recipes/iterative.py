"""The exact GP beyond dense memory: hyper-parameters by near rows, judged by the exact likelihood, then one solve."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, RowSource, target_is_constant
from certgp.gp import LocalProcess, exact_log_evidence
from certgp.gp.iterative import estimate_cost, solve_exactly
from certgp.gp.neighbours import Neighbours
from certgp.gp.vecchia import NEIGHBOURS
from certgp.kernels import Kernel
from certgp.training.full_batch.trials import Trial
from certgp.training.recipes.local import LocalTrainer
from certgp.training.recipes.local_rounds import LocalRecipe
from certgp.training.recipes.settings import Settings
from certgp.training.recipes.trainer import Fit

TrainSubset = Callable[[Chunk], Fit]
_TRAIN_NEIGHBOURS = 30
_SUBSET_ROWS = 1_000  # on which the exact likelihood trains
_JUDGES, _JUDGE_ROWS = 4, 500  # neighbourhoods whose exact likelihood decides, and their size
_WORTH_A_LINE = 10.0  # seconds


def fit_iteratively(settings: Settings, source: RowSource, tolerance: float, train_subset: TrainSubset) -> Fit:
    """Train on near rows, keep the better of that and of an exact fit to some rows, and solve for all means.

    ``tolerance`` is the proven error of any mean in standard deviations of y.
    """
    recipe = LocalRecipe(NEIGHBOURS, _TRAIN_NEIGHBOURS, "ard")
    fit = LocalTrainer(recipe, settings).fit(source, source.n_rows)
    local, trials = fit.process, fit.trials
    assert isinstance(local, LocalProcess)
    if settings.optimize and not fit.outcome.stopped and not target_is_constant(source):
        local, judged = _judge(local, settings.new_generator(), train_subset)
        trials = (*trials, *judged)
    estimate = estimate_cost(local.kernel, local.inputs)
    if settings.verbose or estimate.seconds > _WORTH_A_LINE:
        print(f"ExactGP: {estimate}", file=sys.stderr, flush=True)
    process = solve_exactly(local, tolerance * _deviation(local))
    return replace(fit, process=process, trials=trials)


def _deviation(local: LocalProcess) -> float:
    """Standard deviation of the targets; one where they do not vary."""
    found = float(local.y.std(correction=0))
    return found if found > 0.0 else 1.0


def _judge(
    local: LocalProcess, rng: np.random.Generator, train_subset: TrainSubset
) -> tuple[LocalProcess, tuple[Trial, ...]]:
    """The local fit, or its rows at the hyper-parameters of an exact fit to some of them, whichever the exact
    likelihood of neighbourhoods prefers: rows near each other, so that they lie as densely as all rows do.
    """
    started = time.perf_counter()
    rows = local.rows
    subset = train_subset(_some(rows, rng.permutation(local.n_rows)[:_SUBSET_ROWS])).process
    seconds = time.perf_counter() - started
    index = Neighbours(rows.X.numpy())
    centres = rng.permutation(local.n_rows)[:_JUDGES]
    judges = [_some(rows, near) for near in index.nearest(rows.X.numpy()[centres], min(_JUDGE_ROWS, local.n_rows))]
    losses = [_loss(judges, p.kernel, p.noise_variance) for p in (local, subset)]
    trials = (Trial("near rows", math.nan, losses[0], 0.0), Trial("exact on some rows", math.nan, losses[1], seconds))
    if losses[0] <= losses[1]:
        return local, trials
    other = LocalProcess(
        local.transform,
        subset.kernel,
        local.X,
        local.y,
        subset.noise_variance,
        local.neighbours,
        local.train_neighbours,
        weight=rows.weight,
    )
    return other, trials


def _some(rows: Chunk, picked: NDArray[np.int64]) -> Chunk:
    at = torch.from_numpy(np.sort(picked))
    return rows.pick(at)


@torch.no_grad()
def _loss(judges: list[Chunk], kernel: Kernel, noise: float) -> float:
    """-log p(y) per row of the exact GP on each neighbourhood."""
    total = sum(exact_log_evidence(kernel(rows.X, rows.X), rows.y, rows.noise(noise)) for rows in judges)
    return -total / sum(len(rows.y) for rows in judges)
