r"""How far a fit to few rows is to be believed.

Learned numbers (a projection, length-scales) fit noise as well, by about one nat for each two of them, and where rows
are few in comparison neither the evidence nor closed-form leave-one-out residuals tell: the rows that they predict have
had a say in these numbers. Rows of folds that were left out of the whole training do. They choose the factor by which
the ratio of noise to signal is raised, up to the constant model: the process that comes out is a GP with the same
kernel but for its variances, and certificates speak of that one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, RowSource
from certgp.data.copies import row_keys
from certgp.gp import (
    GaussianProcess,
    IterativeProcess,
    MixtureProcess,
)
from certgp.gp.calibration import Array, gaussian_log_density
from certgp.gp.kinds import SingleProcess
from certgp.gp.profile import NOISE_RATIO_BOUNDS
from certgp.training.noise import Unseen, leave_one_out

FEWEST_ROWS = 6  # below, nothing but a constant can be learned: a kernel has three numbers at least
FOLDS = 4
_ENOUGH_ROWS = 50  # for each learned number: what these can feign is then a hundredth of a nat per row
_TOO_FEW_ROWS = 3  # for each learned number: the fit may go through all rows whatever they are
_GAIN = 10.0  # nats for each learned number that rows must gain over a constant: noise gave up to three
_FACTORS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
CONSTANT = math.inf
_RATIO = NOISE_RATIO_BOUNDS[1]  # of noise to signal, at which nothing but the noise is left
_STANDARD_ERRORS = 1.0  # by which rows held out in a race must prefer a process to a constant
_CLEARLY = 2.0  # the same of rows that choose among factors, where several may look better by chance


def count_learned(process: GaussianProcess) -> int:
    """Numbers that were learned from the rows: the map in front of the kernel and the kernel's, with the noise.

    Inducing points are not among them: they only make a bound tighter.
    """
    kernel = sum(value.numel() for value in process.kernel.values.values())
    transform = process.transform
    front = 0 if transform is None else sum(p.numel() for p in transform.parameters())
    return kernel + front + 2


def is_doubtful(process: GaussianProcess, source: RowSource, n_learned: int, rng: np.random.Generator) -> bool:
    """Are these rows so few for the numbers learned from them, or the gain over a constant so small, that folds should
    have a look?
    """
    n = source.n_rows
    if n > _ENOUGH_ROWS * n_learned or isinstance(process, IterativeProcess):
        return False
    if n < _TOO_FEW_ROWS * n_learned:
        return True
    losses = [_unseen_losses(member, source, rng) for member in process.members]
    constant = _constant_losses(source.take(slice(None)), source.take(slice(None)))
    return n * float(constant.mean() - np.mean(losses)) < _GAIN * n_learned


def split_folds(source: RowSource, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Positions to learn from and positions left out of four folds; rows with the same inputs are in one fold."""
    inputs = source.take(slice(None)).X.double().numpy()
    _, group = np.unique(row_keys([inputs], source.n_columns), return_inverse=True)
    fold = rng.permutation(int(group.max()) + 1)[group] % FOLDS
    for number in range(FOLDS):
        out = np.flatnonzero(fold == number)
        if 0 < len(out) < source.n_rows - 1:
            yield np.flatnonzero(fold != number), out


def choose_factor(trained: Sequence[tuple[GaussianProcess, RowSource, Chunk]]) -> float:
    """One where rows that processes have not seen are better off with them than with a constant, by more than two
    standard errors; else the factor of the noise ratio under which they are likeliest, ``CONSTANT`` where none is
    better than that. Of each process its own rows, and those others.
    """
    constant = np.concatenate([_constant_losses(rows.take(slice(None)), out) for _, rows, out in trained])
    best, least = CONSTANT, math.inf
    for factor in _FACTORS:
        losses = np.concatenate([_losses(restrain(process, rows, factor), out) for process, rows, out in trained])
        gains = constant - losses
        error = float(gains.std()) / math.sqrt(len(gains))
        if losses.mean() < least and gains.mean() > _CLEARLY * error:
            best, least = factor, float(losses.mean())
            if factor == 1.0:  # a fit that beats a constant stays as it is
                break
    return best


def prefers_constant(losses: Array, rows: Chunk, out: Chunk) -> bool:
    """Are rows with these losses (n,) under some model not clearly better off than under a constant from ``rows``?"""
    gains = _constant_losses(rows, out) - losses
    return float(gains.mean()) <= _STANDARD_ERRORS * float(gains.std()) / math.sqrt(len(gains))


def restrain(process: GaussianProcess, source: RowSource, factor: float) -> GaussianProcess:
    """The process of these rows with its noise ratio raised by a factor, at the scale that its leave-one-out residuals
    have; as it is where the factor is one.
    """
    if factor == 1.0:
        return process
    if isinstance(process, MixtureProcess):
        return process.with_members([restrain(member, source, factor) for member in process.members])
    assert isinstance(process, SingleProcess)
    if factor == CONSTANT:
        noise = _constant_variance(source.take(slice(None)))
        changed: SingleProcess = process.with_variances(noise / _RATIO, noise)
    else:
        ratio = min(_RATIO, factor * process.noise_variance / process.signal_variance)
        unscaled = process.with_variances(1.0, ratio)
        unseen = leave_one_out(unscaled, source, np.random.default_rng(0))
        scale = float((unseen.residuals.square() / (unseen.variances + ratio)).mean())
        changed = process.with_variances(scale, scale * ratio)
    changed.noise_scale, changed.noise_model = 1.0, None
    return changed


def _losses(process: GaussianProcess, rows: Chunk) -> Array:
    """Negative log density (n,) of rows under constant noise."""
    mean, variance = process.moments(rows.X)
    total = variance + rows.noise(process.predictive_noise)
    return -gaussian_log_density(rows.y.double().numpy(), mean.numpy(), total.numpy())


def _unseen_losses(process: GaussianProcess, source: RowSource, rng: np.random.Generator) -> float:
    """Mean negative log density of rows predicted from all others."""
    assert isinstance(process, SingleProcess)
    unseen: Unseen = leave_one_out(process, source, rng)
    total = unseen.variances + process.predictive_noise
    root = torch.ones(()).double() if unseen.weight is None else unseen.weight.sqrt()
    density = gaussian_log_density(unseen.residuals.numpy(), np.zeros(len(total)), total.numpy())
    return float((-torch.from_numpy(density) - root.log()).mean())


def _constant_variance(rows: Chunk) -> float:
    """Of a new observation under the constant model: s2 (1 + 1 / n), s2 with n - 1 degrees of freedom."""
    n = len(rows.y)
    return float((rows.weights() * rows.y.double().square()).mean()) * (n + 1) / max(n - 1, 1)


def _constant_losses(rows: Chunk, out: Chunk) -> Array:
    y = out.y.double().numpy()
    variance = np.broadcast_to(np.asarray(out.noise(_constant_variance(rows))), y.shape)
    return -gaussian_log_density(y, np.zeros_like(y), variance)
