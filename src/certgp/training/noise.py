r"""Learning noise(x) from rows that were predicted without their own targets.

Residuals r_i of such rows have variance u_i + n(x_i), u_i the latent variance. The weights of log n(x) = b + w'psi(x)
maximise sum_i log N(r_i | 0, u_i + n(x_i)) - lam/2 |w|^2 by Fisher scoring, for all penalties and all folds of the rows
at once. What the other folds say of each fold then chooses the penalty and the shape of the noise, and decides whether
it is kept: only where it predicts better than the best constant noise by more than two standard errors.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from torch import Tensor

from certgp.data import RowSource
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError
from certgp.gp import (
    FullScaleProcess,
    GaussianProcess,
    LocalProcess,
    LowRankProcess,
)
from certgp.gp.calibration import Array, gaussian_log_density
from certgp.gp.kinds import SingleProcess
from certgp.gp.noise import NoiseBasis, NoiseGain, NoiseInputs, NoiseModel, scale_latent

FEWEST_ROWS = 200  # below, noise is constant without a trial
MOST_ROWS = 20_000  # that a hundred or so weights need, and that local models predict in a moment
_FEWEST_SHARED = 2_000  # of each output, where several share these rows (docs/decisions/0040)
_MOST_NUMBERS = 2**21  # of psi (16 MiB)
_SECONDS_PER_NUMBER = 7e-7  # of psi
InBlocks = LocalProcess | FullScaleProcess  # a row's neighbours cost the same however many rows are asked for
_BLOCK_ROWS, _LOOKING = 1_000, 0.65  # rows at a time, and their share of the time; the rest is for learning
_FOLDS = 4
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
_FACTORS = (0.4, 0.55, 0.7, 0.85, 1.0, 1.2)  # a
_SHARES = (0.02, 0.05, 0.1, 0.2)  # p
_WIDE = (3.0, 10.0, 30.0)  # c
_LATENT = (0.6, 0.3, 0.1)  # shares of the latent variance that are tried, each if the one before gained
_STEPS, _HALVINGS, _ENOUGH = 25, 6, 1e-5  # nats per row
_RANGE = (-12.0, 8.0)  # of log n(x) / nbar
_LONGEST_STEP = 2.0  # of the intercept
_CUT = 0.001  # of the rows at either end of log n(x)
_COVERAGE, _COVERAGE_ERROR = 0.95, 0.015
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True, eq=False)
class Unseen:
    """Rows with their targets (n,), and what a model says of them that has not seen these targets."""

    rows: NoiseInputs
    y: Tensor
    weight: Tensor | None = None  # (n,): a row of weight w scatters with n(x) / w

    @property
    def residuals(self) -> Tensor:
        """(n,), times sqrt(weight): their variances are ``variances`` + n(x)."""
        plain = self.y - self.rows.mean
        return plain if self.weight is None else self.weight.sqrt() * plain

    @property
    def variances(self) -> Tensor:
        """Latent variances (n,), times the weight."""
        return self.rows.variance if self.weight is None else self.weight * self.rows.variance

    def sample(self, rng: np.random.Generator) -> Unseen:
        """All rows, or as many of them as psi may have."""
        columns = 2 * self.rows.X.shape[1] + self.rows.features.shape[1]
        most = _most_rows(columns)
        if len(self.y) <= most:
            return self
        picked = torch.from_numpy(np.sort(rng.permutation(len(self.y))[:most]))
        return Unseen(self.rows.take(picked), self.y[picked], None if self.weight is None else self.weight[picked])


def _most_rows(columns: int) -> int:
    return max(FEWEST_ROWS, min(MOST_ROWS, _MOST_NUMBERS // columns))


def add_noise_model(
    process: GaussianProcess,
    source: RowSource,
    rng: np.random.Generator,
    always: bool,
    outputs: int = 1,
    seconds: float = math.inf,
) -> int | None:
    """Give a process that was conditioned on these rows a noise model, where that pays or ``always``. One of several
    ``outputs`` learns it from its share of the rows that one alone would take, so that all cost little more. Returns
    how many rows were looked at where there were not ``seconds`` for all that it would take.
    """
    if isinstance(process, SingleProcess):
        if always or source.n_rows >= FEWEST_ROWS:
            unseen = leave_one_out(process, source, rng, outputs, _LOOKING * seconds)
            learn_noise(process, unseen, rng, always)
            if isinstance(process, InBlocks) and len(unseen.y) < min(process.n_rows, MOST_ROWS):
                return len(unseen.y)
    elif always:
        refuse_input_noise(f"a {type(process).__name__} cannot predict its rows without their own targets")
    return None


def leave_one_out(
    process: SingleProcess,
    source: RowSource,
    rng: np.random.Generator,
    outputs: int = 1,
    seconds: float = math.inf,
) -> Unseen:
    """Some of the rows, each predicted from all others; fewer where neighbours of all would take more ``seconds``."""
    if isinstance(process, InBlocks) and math.isfinite(seconds):
        return _leave_some_out(process, rng.permutation(process.n_rows)[:MOST_ROWS], seconds)
    if not isinstance(process, LowRankProcess):
        rows = np.sort(rng.permutation(process.n_rows)[:MOST_ROWS])
        some = process.rows.pick(torch.from_numpy(rows)).to(torch.float64)
        return Unseen(process.leave_one_out(rows), some.y, some.weight)
    most = _most_rows(process.rank + 2 * source.n_columns)
    chunk = source.sample(min(most, max(_FEWEST_SHARED, most // outputs)), rng)
    parts, size = [], default_chunk_rows(process.rank)
    for start in range(0, len(chunk.y), size):
        some = chunk.pick(slice(start, start + size))
        parts.append(process.leave_one_out(some.X, some.y, some.weight))
    return Unseen(NoiseInputs.join(parts), chunk.y, chunk.weight)


def _leave_some_out(process: InBlocks, rows: NDArray[np.int64], seconds: float) -> Unseen:
    """One block of the rows after the other, as long as another one is done in time."""
    started, parts, done = time.perf_counter(), [], 0
    while done < len(rows):
        began = time.perf_counter()
        parts.append(process.leave_one_out(rows[done : done + _BLOCK_ROWS]))
        done += _BLOCK_ROWS
        now = time.perf_counter()
        if now - started + (now - began) > seconds:
            break
    order = np.argsort(rows[:done])  # as without a limit
    some = process.rows.pick(torch.from_numpy(rows[:done][order])).to(torch.float64)
    return Unseen(NoiseInputs.join(parts).take(torch.from_numpy(order)), some.y, some.weight)


def seconds_to_learn(n_rows: int, columns: int) -> float:
    """About how many CPU seconds a noise model of these rows takes, with so many columns of psi."""
    return _SECONDS_PER_NUMBER * columns * min(n_rows, _most_rows(columns))


def refuse_input_noise(why: str) -> None:
    """Say why noise='input' cannot be."""
    raise InvalidInputError(f"noise='input' needs rows that the model has not seen, and {why}; use noise='auto'")


def check_enough_rows(n_rows: int) -> None:
    """Refuse noise='input' for fewer rows than it can be learned from, before anything is trained."""
    if n_rows < FEWEST_ROWS:
        refuse_input_noise(f"{n_rows} of them are fewer than {FEWEST_ROWS}")


def learn_noise(process: GaussianProcess, unseen: Unseen, rng: np.random.Generator, always: bool) -> None:
    """Give a process the noise model that rows it has not seen choose, where they prefer it or ``always``."""
    unseen = unseen.sample(rng)
    n = len(unseen.y)
    obstacle = f"{n} of them are fewer than {FEWEST_ROWS}" if n < FEWEST_ROWS else None
    if bool((unseen.rows.X[:1] == unseen.rows.X).all()):
        obstacle = "their inputs do not vary"
    if obstacle is not None:
        if always:
            refuse_input_noise(obstacle)
        return
    residuals, variance = unseen.residuals.numpy(), unseen.variances.numpy()
    constant = -gaussian_log_density(residuals, np.zeros(n), variance + constant_noise(residuals, variance))
    found = _learn_at_best_latent(unseen, torch.from_numpy(rng.permutation(n) % _FOLDS))
    gains = constant - found.losses
    error = float(gains.std(ddof=1)) / math.sqrt(n)
    accepted = always or float(gains.mean()) > _STANDARD_ERRORS * error
    process.noise_gain = NoiseGain(float(gains.mean()), error, accepted, n)
    if accepted:
        process.noise_model = found.model


@dataclass(frozen=True, eq=False)
class _Learned:
    """A noise model, and the losses (n,) of rows by fits and shapes that they had no part in."""

    model: NoiseModel
    losses: Array


def _learn_at_best_latent(unseen: Unseen, folds: Tensor) -> _Learned:
    """With all of the latent variance, or with less of it as long as that gains more than two standard errors."""
    usual = float(unseen.rows.variance.max())
    best = _learn_shape(unseen, folds, 1.0, usual)
    for latent in _LATENT:
        found = _learn_shape(unseen, folds, latent, usual)
        gains = best.losses - found.losses
        if gains.mean() <= _STANDARD_ERRORS * gains.std(ddof=1) / math.sqrt(len(gains)):
            break
        best = found
    return best


def _learn_shape(unseen: Unseen, folds: Tensor, latent: float, usual: float) -> _Learned:
    """The noise model at a share of the latent variance; the shape that one half of the folds chooses is judged on the
    other half.
    """
    rows = scale_latent(unseen.rows, latent, usual)
    scaled = replace(unseen, rows=rows)
    residuals, variance, n = scaled.residuals, scaled.variances, len(scaled.y)
    level = constant_noise(residuals.numpy(), variance.numpy())
    basis = NoiseBasis.of(rows, level)
    fitted = _Scoring(basis(rows), residuals, variance, level, folds).run()
    facts = residuals.numpy(), variance.numpy(), level, fitted.unseen.numpy()
    half = (folds < _FOLDS // 2).numpy()
    chosen, first, second = _choose_shapes(*facts, np.stack([np.ones(n), half, ~half], 1))
    losses = np.where(half, second.losses(*facts), first.losses(*facts))
    return _Learned(replace(fitted.model(basis, chosen), latent=latent, usual=usual), losses)


def constant_noise(residuals: Array, variance: Array) -> float:
    """argmax over s2 of sum_i log N(r_i | 0, u_i + s2)."""
    most = math.log(float(np.mean(np.square(residuals))) + np.finfo(np.float64).tiny)

    def loss(log_noise: float) -> float:
        return -float(
            np.mean(gaussian_log_density(residuals, np.zeros_like(residuals), variance + math.exp(log_noise)))
        )

    found = minimize_scalar(loss, bounds=(most - 14.0, most + 1.0), method="bounded")
    return math.exp(float(found.x))


@dataclass(frozen=True)
class _Shape:
    """How n(x) enters the density of observations."""

    penalty: int  # which one
    factor: float
    share: float
    wide: float

    def losses(self, residuals: Array, variance: Array, level: float, log_noise: Array) -> Array:
        """Of rows with these residuals (n,) and values of log n (n, penalties)."""
        narrow, _ = _log_density_and_share(residuals, variance + self.factor * np.exp(log_noise[:, self.penalty]))
        wide, _ = _log_density_and_share(residuals, variance + self.wide * level)
        return _mixture_losses(narrow, wide, self.share)


def _choose_shapes(residuals: Array, variance: Array, level: float, log_noise: Array, groups: Array) -> list[_Shape]:
    """For each group of rows, a column of ones and zeros (n, g): the least mean loss among shapes whose 95 % intervals
    hold as many rows as they should, as far as these rows can tell; among all where none does.
    """
    size, p = np.abs(residuals), np.array(_SHARES)[:, None]
    wide, wide_below = (
        np.stack(part)[:, None]
        for part in zip(*(_log_density_and_share(size, variance + c * level) for c in _WIDE), strict=True)
    )
    counts = groups.sum(0)
    allowed = np.maximum(_COVERAGE_ERROR, 2.0 * np.sqrt(_COVERAGE * (1.0 - _COVERAGE) / counts))
    best: list[tuple[bool, float, _Shape] | None] = [None] * len(counts)
    for k, a in product(range(log_noise.shape[1]), _FACTORS):
        density, below = _log_density_and_share(size, variance + a * np.exp(log_noise[:, k]))
        losses = _mixture_losses(density, wide, p) @ groups / counts  # (c, p, g)
        inside = ((1.0 - p) * below + p * wide_below < 0.5 * (1.0 + _COVERAGE)) @ groups / counts
        misses = np.abs(inside - _COVERAGE) > allowed
        for g, known in enumerate(best):
            first = np.lexsort((losses[..., g].ravel(), misses[..., g].ravel()))[0]
            c, share = np.unravel_index(first, losses.shape[:2])
            key = bool(misses[c, share, g]), float(losses[c, share, g])
            if known is None or key < known[:2]:
                best[g] = *key, _Shape(k, a, _SHARES[share], _WIDE[c])
    return [found[2] for found in best if found is not None]


def _mixture_losses(narrow: Array, wide: Array, share: float | Array) -> Array:
    return np.asarray(-np.logaddexp(np.log1p(-share) + narrow, np.log(share) + wide))


def _log_density_and_share(size: Array, variance: Array) -> tuple[Array, Array]:
    """Of a centred Gaussian: its log density at ``size``, and its probability below."""
    return gaussian_log_density(size, np.zeros_like(size), variance), np.asarray(ndtr(size / np.sqrt(variance)))


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Weights for each penalty (outer) and fold (inner), K of them in all."""

    intercepts: Tensor  # (K,)
    weights: Tensor  # (p, K)
    least: Tensor  # (K,) of log n(x)
    most: Tensor
    unseen: Tensor  # (n, penalties): log n of each row by the fit that left its fold out

    def model(self, basis: NoiseBasis, shape: _Shape) -> NoiseModel:
        """The mean of the folds' fits."""
        mine = slice(shape.penalty * _FOLDS, (shape.penalty + 1) * _FOLDS)
        numbers = (float(each[mine].mean()) for each in (self.intercepts, self.least, self.most))
        intercept, least, most = numbers
        weights = self.weights[:, mine].mean(1)
        return NoiseModel(basis, intercept, weights, least, most, shape.factor, shape.share, shape.wide)


class _Scoring:
    r"""Fisher scoring of K problems at once, one for each penalty lam and each fold left out; psi is centred in place.

    With kappa = n / (u + n) the gradient in log n is 1/2 kappa (r^2 / (u + n) - 1) and its Fisher information
    1/2 kappa^2, here replaced by its mean over rows: then one eigendecomposition of Psi'Psi for each fold serves all
    steps and penalties. Steps are halved until the penalised likelihood rises.
    """

    def __init__(self, psi: Tensor, residuals: Tensor, variance: Tensor, level: float, folds: Tensor) -> None:
        self._centre = psi.mean(0)
        self._psi = psi.sub_(self._centre)
        self._squares, self._variance = residuals.square()[:, None], variance[:, None]
        self._start = math.log(level)
        left_out = torch.arange(_FOLDS).repeat(len(_PENALTIES))
        self._penalties = torch.tensor(_PENALTIES, dtype=torch.float64).repeat_interleave(_FOLDS)
        self._seen = (folds[:, None] != left_out).double()  # (n, K)
        self._counts = self._seen.sum(0)
        self._folds, self._left_out = folds, left_out
        gram = self._psi.mT @ self._psi
        parts = [self._psi[folds == fold] for fold in range(_FOLDS)]
        self._spectra = [torch.linalg.eigh(gram - part.mT @ part) for part in parts]

    def run(self) -> _Fitted:
        """The best weights of every problem."""
        K = len(self._penalties)
        b, w = torch.full((K,), self._start, dtype=torch.float64), self._psi.new_zeros((self._psi.shape[1], K))
        loss, noise = self._evaluate(b, w)
        for _ in range(_STEPS):
            step_b, step_w = self._step(noise, w)
            length, before = torch.ones(K, dtype=torch.float64), loss
            for halving in range(_HALVINGS + 2):
                loss, noise = self._evaluate(b + length * step_b, w + length * step_w)
                worse = ~(loss <= before)
                if not bool(worse.any()):
                    break
                length = torch.where(worse, length / 2.0 if halving < _HALVINGS else torch.zeros(()).double(), length)
            b, w = b + length * step_b, w + length * step_w
            if bool((before - loss < _ENOUGH * self._counts).all()):
                break
        return self._finish(b, w)

    def _evaluate(self, b: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """Penalised negative log likelihoods (K,) but for constants, and n(x) (n, K)."""
        low, high = (self._start + end for end in _RANGE)
        noise = torch.addmm(b, self._psi, w).clamp_(low, high).exp_()
        total = noise + self._variance
        losses = (self._squares / total).add_(total.log_()).mul_(self._seen).sum(0)
        return 0.5 * (losses + self._penalties * w.square().sum(0)), noise

    def _step(self, noise: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        total = noise + self._variance
        kappa = (noise / total).mul_(self._seen)
        slope = torch.div(self._squares, total, out=total).sub_(1.0).mul_(kappa).mul_(0.5)  # (n, K)
        weight = 0.5 * kappa.square_().sum(0) / self._counts + torch.finfo(torch.float64).tiny
        gradient = self._psi.mT @ slope - self._penalties * w
        step_w = torch.empty_like(w)
        for fold, (values, vectors) in enumerate(self._spectra):
            mine = self._left_out == fold
            curvature = values.clamp_min(0.0)[:, None] * weight[mine] + self._penalties[mine]
            step_w[:, mine] = vectors @ ((vectors.mT @ gradient[:, mine]) / curvature)
        step_b = slope.sum(0) / (self._counts * weight)
        too_long = (step_b.abs() / _LONGEST_STEP).clamp_min(1.0)
        return step_b / too_long, step_w / too_long

    def _finish(self, b: Tensor, w: Tensor) -> _Fitted:
        """Clip log n(x) to what most rows of a fit have, and apply each fit to the fold it left out."""
        values = torch.addmm(b, self._psi, w)
        ends = torch.tensor([_CUT, 1.0 - _CUT], dtype=torch.float64)
        least, most = torch.stack(
            [torch.from_numpy(np.quantile(values[self._seen[:, k] > 0, k].numpy(), ends)) for k in range(len(b))], 1
        )
        values = torch.minimum(torch.maximum(values, least), most)
        own = self._folds[:, None] + _FOLDS * torch.arange(len(_PENALTIES))
        return _Fitted(b - self._centre @ w, w, least, most, values.gather(1, own))
