r"""Fitting with Student-t noise: weighted GPs whose weights follow from how far each row is from what the others say.

Outer rounds train hyper-parameters on weighted rows. Between them, and cheaply because the kernel's shape is held, the
weights settle: rows are weighed by E l_i (``gp.student``), the GP is conditioned on the weighted rows, and so on.
Degrees of freedom and scale are those under which rows that are predicted without their own targets have the highest
density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from certgp.data import ChunkSource, ReweightedSource, RowSource
from certgp.engines import fold_feature_statistics
from certgp.engines.local import default_chunk_rows
from certgp.gp import (
    ExactProcess,
    FullScaleProcess,
    GaussianProcess,
    IterativeProcess,
    LocalProcess,
    LowRankProcess,
    MixtureProcess,
)
from certgp.gp.calibration import Array, gaussian_log_density
from certgp.gp.kinds import HoldsRows
from certgp.gp.noise import NoiseInputs
from certgp.gp.profile import profile_evidence
from certgp.gp.student import StudentNoise, second_moments, student_weights
from certgp.training.noise import constant_noise
from certgp.training.recipes.settings import Settings

ROUNDS = 2  # of weighted fits after the first one, which has no weights to go by
_DEGREES_OF_FREEDOM = (2.5, 3.0, 4.0, 6.0, 10.0, 20.0)
_STANDARD_ERRORS = 2.0  # by which the t must beat the Gaussian, so that clean rows are fitted as ever
_FEWEST_ROWS, _MOST_ROWS = 10, 10_000  # that choose the noise
_CHOICES, _STEPS, _ENOUGH = 3, 8, 1e-3  # of the noise; of the weights at each; mean change of a weight


def choose_student(
    process: GaussianProcess, given: RowSource, weighted: RowSource, rng: np.random.Generator
) -> StudentNoise | None:
    """The t whose density of rows, each given all others, is highest; None where a Gaussian is as good to within two
    standard errors. The process, one GP, is conditioned on the ``weighted`` rows; those ``given`` are the same with the
    weights that their noise is known to have. Where held-out rows have scaled the noise, they scale this one as well.
    """
    if given.n_rows < _FEWEST_ROWS:
        return None
    unseen = _leave_one_out(process, given, weighted, rng)
    residuals, variance, weight = unseen.residuals, unseen.variance, unseen.weight
    root = np.sqrt(weight)
    level = constant_noise(root * residuals, weight * variance)
    gaussian = gaussian_log_density(residuals, np.zeros_like(residuals), variance + level / weight)
    _, best = max((_scaled(nu, unseen, level) for nu in _DEGREES_OF_FREEDOM), key=lambda each: each[0])
    gains = best.log_density(residuals, variance, weight) - gaussian
    error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
    if not float(gains.mean()) > _STANDARD_ERRORS * error:
        return None
    return replace(best, scale=process.noise_scale * best.scale)


@dataclass(frozen=True, eq=False)
class _Unseen:
    """Of some rows (n,), each predicted from all others: residual, latent variance, and the weight of its noise."""

    residuals: Array
    variance: Array
    weight: Array


def _leave_one_out(
    process: GaussianProcess, given: RowSource, weighted: RowSource, rng: np.random.Generator
) -> _Unseen:
    some = np.sort(rng.permutation(given.n_rows)[:_MOST_ROWS])
    if isinstance(process, LowRankProcess):
        rows = weighted.take(some).to(torch.float64)
        size = default_chunk_rows(process.rank)
        parts = [rows.pick(slice(start, start + size)) for start in range(0, len(some), size)]
        alone = NoiseInputs.join([process.leave_one_out(part.X, part.y, part.weight) for part in parts])
    else:
        assert isinstance(process, HoldsRows)
        rows, alone = process.rows.pick(torch.from_numpy(some)), process.leave_one_out(some)
        some = _order_of(process, given)[some]
    weight = given.take(some).weights()
    return _Unseen((rows.y - alone.mean).numpy(), alone.variance.numpy(), weight.numpy())


def _scaled(nu: float, unseen: _Unseen, level: float) -> tuple[float, StudentNoise]:
    """The t with nu degrees of freedom at its best scale, and its mean log density."""

    def loss(log_scale: float) -> float:
        noise = StudentNoise(nu, math.exp(log_scale))
        return -float(noise.log_density(unseen.residuals, unseen.variance, unseen.weight).mean())

    most = math.log(level)
    found = minimize_scalar(loss, bounds=(most - 14.0, most + 0.5), method="bounded", options={"xatol": 0.01})
    return -float(found.fun), StudentNoise(nu, math.exp(float(found.x)))


def settle_weights(
    process: GaussianProcess, source: RowSource, noise: StudentNoise, settings: Settings, rng: np.random.Generator
) -> Tensor:
    """Factors (N,) of the weights of all rows, in the order of the source, with the shape of the kernel held."""
    if isinstance(process, MixtureProcess):
        found = [settle_weights(member, source, noise, settings, rng) for member in process.members]
        return torch.stack(found).mean(0)
    rows = source
    if isinstance(process, IterativeProcess):
        process = process.local
    if isinstance(process, ExactProcess | FullScaleProcess | LocalProcess):
        order = _order_of(process, source)
        rows = ChunkSource(source.take(order).to(torch.float64))
    factors = _settle(process, rows, noise, settings, rng)
    if rows is not source:
        factors = torch.empty_like(factors).index_copy_(0, torch.from_numpy(order), factors)
    return factors


def _settle(
    process: GaussianProcess, rows: RowSource, noise: StudentNoise, settings: Settings, rng: np.random.Generator
) -> Tensor:
    factors, scale = torch.ones(rows.n_rows, dtype=torch.float64), noise.scale
    chosen: StudentNoise | None = noise
    for _ in range(_CHOICES):
        if chosen is None:
            break
        start = factors
        for _ in range(_STEPS):
            moments = _second_moments(process, rows, factors, scale)
            before, factors = factors, student_weights(moments, scale, chosen.degrees_of_freedom)
            process, scale = _recondition(process, rows, factors, moments, settings)
            if float((factors - before).abs().mean()) < _ENOUGH:
                break
        if float((factors - start).abs().mean()) < _ENOUGH:
            break
        chosen = choose_student(process, rows, ReweightedSource(rows, factors), rng)
        scale = scale if chosen is None else chosen.scale
    return factors


def _second_moments(process: GaussianProcess, rows: RowSource, factors: Tensor, scale: float) -> Tensor:
    """weight_i E (y_i - f_i)^2 (N,) given all rows, the weights being those of the rows themselves."""
    if isinstance(process, LowRankProcess):
        parts = []
        for chunk in rows.chunks(default_chunk_rows(process.rank)):
            mean, variance = process.moments(chunk.X)
            parts.append(chunk.weights() * ((chunk.y.double() - mean).square() + variance))
        return torch.cat(parts)
    assert isinstance(process, ExactProcess | FullScaleProcess | LocalProcess)
    chunk, alone = rows.take(slice(None)), process.leave_one_out(np.arange(process.n_rows))
    noise = scale / (chunk.weights() * factors)
    return chunk.weights() * second_moments(chunk.y - alone.mean, alone.variance, noise)


def _recondition(
    process: GaussianProcess, rows: RowSource, factors: Tensor, moments: Tensor, settings: Settings
) -> tuple[GaussianProcess, float]:
    """The process given the weighted rows, at the noise that they want, and that noise."""
    weighted = ReweightedSource(rows, factors)
    if isinstance(process, LowRankProcess):
        stats = fold_feature_statistics(process.model, weighted, settings.engine)
        signal, noise = process.signal_variance, process.noise_variance
        if settings.optimize:
            best = profile_evidence(stats, settings.objective)
            signal, noise = best.signal_variance, best.noise_variance
        return LowRankProcess(process.model, stats, signal, noise, process.variance_kind), noise
    noise = float((factors * moments).mean()) if settings.optimize else process.noise_variance
    chunk = weighted.take(slice(None))
    if isinstance(process, ExactProcess):
        return ExactProcess(process.kernel, chunk.X, chunk.y, noise, chunk.weight), noise
    assert isinstance(process, FullScaleProcess | LocalProcess)
    return process.reweighted(chunk.weight, noise), noise


def _order_of(process: HoldsRows, source: RowSource) -> np.ndarray:
    """For each row that the process holds, its number in the source: both are sorted by all columns."""
    given, held = source.take(slice(None)).to(torch.float64), process.rows
    first, second = (np.lexsort(torch.cat([each.X, each.y[:, None]], 1).numpy().T) for each in (given, held))
    order = np.empty(len(first), dtype=np.int64)
    order[second] = first
    return order
