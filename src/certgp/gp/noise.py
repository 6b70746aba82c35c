r"""Noise that depends on the input: how new observations scatter around f at each x.

    log n(x) = b + w'psi(x),   y ~ (1 - p) N(mean, v' + a n(x)) + p N(mean, v' + c nbar)

psi(x) holds what may tell how large the scatter is: the inputs and their squares, the prediction and its variance, and
what the process adds (its features, or how targets scatter among the nearest rows). The second, wide component has a
constant variance: no observation costs more than -log p over what constant noise would say of it. v' is the variance v
of f, or less of it: where rows left out say that the process is less sure of f than it might be,
v' = v - (1 - l) min(v, the largest v that these rows had), so that far from all rows it is v again but for a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

NOISES = ("auto", "constant", "input")
_SCALES = (2, 4, 8, 16, 32, 64)  # numbers of nearest rows over which targets scatter
NEAR = _SCALES[-1]
_LARGEST = 4.0  # standard deviations of a column; beyond, psi does not grow
_NUMBERS = ("y_mean", "y_scale", "level", "scales")
_FLOOR = 1e-4  # of nbar: variances below are all alike


@dataclass(frozen=True, eq=False)
class Noise:
    """At n rows: Gaussian with variances[k] (k, n), or (k, 1) for all rows alike, with probability shares[k] (k,)."""

    shares: Tensor
    variances: Tensor

    @staticmethod
    def constant(variance: float) -> Noise:
        """The same at every row."""
        return Noise(torch.ones(1, dtype=torch.float64), torch.full((1, 1), variance, dtype=torch.float64))

    @property
    def variance(self) -> Tensor:
        """Of an observation around f (n,), or (1,) for all rows alike."""
        return self.shares @ self.variances

    def sample(self, rows: int, count: int, generator: torch.Generator) -> Tensor:
        """Independent draws (rows, count)."""
        normal = torch.randn((rows, count), dtype=torch.float64, generator=generator)
        if len(self.shares) == 1:
            return self.variances[0].sqrt()[:, None] * normal
        picks = torch.multinomial(self.shares, rows * count, replacement=True, generator=generator).view(rows, count)
        return self.variances.expand(-1, rows).sqrt().mT.gather(1, picks) * normal


@dataclass(frozen=True, eq=False)
class NoiseInputs:
    """What is known of n rows without their targets."""

    X: Tensor  # (n, D)
    mean: Tensor  # of f (n,)
    variance: Tensor  # of f (n,)
    fitted: Tensor  # (n, 1) the mean again, of rows conditioned on with their own targets; or (n, 0)
    features: Tensor  # (n, r), of unit signal variance; r = 0 where the process has none
    scatter: Tensor  # (n, k) mean squares of near targets around the mean; k = 0 where the process has no rows

    def take(self, rows: Tensor) -> NoiseInputs:
        """Some of the rows, by their numbers."""
        return NoiseInputs(*(getattr(self, each.name)[rows] for each in fields(NoiseInputs)))

    @staticmethod
    def join(parts: list[NoiseInputs]) -> NoiseInputs:
        """The rows of all parts."""
        return NoiseInputs(*(torch.cat([getattr(part, each.name) for part in parts]) for each in fields(NoiseInputs)))


def nothing(rows: int) -> Tensor:
    """No columns (rows, 0)."""
    return torch.empty((rows, 0), dtype=torch.float64)


def scale_latent(rows: NoiseInputs, latent: float, usual: float) -> NoiseInputs:
    """With v' = v - (1 - latent) min(v, usual) instead of v."""
    return replace(rows, variance=rows.variance - (1.0 - latent) * rows.variance.clamp_max(usual))


def near_scatter(y: Tensor, near: NDArray[np.int64], mean: Tensor) -> Tensor:
    """Mean of (y_j - mean_i)^2 over the nearest 2, 4, ... 64 of the rows ``near`` (n, m), -1 where there are fewer."""
    squares = np.where(near >= 0, np.square(y.numpy()[near] - mean.numpy()[:, None]), 0.0).cumsum(1)
    counts = np.maximum((near >= 0).cumsum(1), 1)
    columns = [min(scale, near.shape[1]) - 1 for scale in _SCALES]
    return torch.from_numpy(squares[:, columns] / counts[:, columns])


@dataclass(frozen=True, eq=False)
class NoiseBasis:
    r"""psi(x) (p,): clipped inputs and their squares, prediction and its square, log variance, features, log scatter.

    Of training rows the prediction is the fitted one: one that leaves a row's own target out tells of it, since all
    such predictions together know the sum of all targets. Fitted values of a linear model and its residuals are
    independent where the noise is Gaussian and constant.

    Everything is in units of the rows it was made from, so that one penalty suits all columns.
    """

    x_mean: Tensor  # (D,)
    x_scale: Tensor  # (D,)
    y_mean: float
    y_scale: float
    level: float  # nbar, the best constant noise
    scales: int  # of the scatter among near rows, that are used

    @staticmethod
    def of(rows: NoiseInputs, level: float) -> NoiseBasis:
        """For rows like these."""
        scale = rows.X.std(0, correction=0)
        y_scale = float(rows.mean.std(correction=0))
        ones = torch.ones_like(scale)
        return NoiseBasis(
            rows.X.mean(0),
            torch.where(scale > 0.0, scale, ones),
            float(rows.mean.mean()),
            y_scale or 1.0,
            level,
            sum(8 * k <= len(rows.X) for k in _SCALES),  # where most rows are near, what is missing tells of the row
        )

    def __call__(self, rows: NoiseInputs) -> Tensor:
        """psi of n rows (n, p)."""
        x = _clipped((rows.X - self.x_mean) / self.x_scale) / math.sqrt(rows.X.shape[1])
        mean = _clipped((rows.fitted - self.y_mean) / self.y_scale)
        variance, scatter = (self._log(part) for part in (rows.variance[:, None], rows.scatter[:, : self.scales]))
        squares = x.square() * math.sqrt(rows.X.shape[1])
        columns = [x, squares, mean, mean.square() / 3.0, variance, rows.features, scatter, scatter.square() / 10.0]
        return torch.cat(columns, 1)

    def _log(self, variance: Tensor) -> Tensor:
        return torch.log(variance / self.level + _FLOOR)


def _clipped(x: Tensor) -> Tensor:
    return x.clamp(-_LARGEST, _LARGEST)


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """log n(x) = intercept + weights'psi(x), kept between two ends; in standardised units."""

    basis: NoiseBasis
    intercept: float
    weights: Tensor  # (p,)
    least: float  # of log n(x)
    most: float
    factor: float  # a: observations scatter with a n(x) ...
    share: float  # ... or, with probability p,
    wide: float  # with c nbar
    latent: float = 1.0  # l
    usual: float = 0.0  # the largest v of rows left out

    def scale(self, rows: NoiseInputs) -> NoiseInputs:
        """With v' instead of v, on which psi is built too."""
        return scale_latent(rows, self.latent, self.usual)

    def variance(self, rows: NoiseInputs) -> Tensor:
        """n(x) (n,)."""
        return (self.intercept + self.basis(rows) @ self.weights).clamp(self.least, self.most).exp()

    def at(self, rows: NoiseInputs) -> Noise:
        """Of new observations at n rows."""
        narrow = self.factor * self.variance(rows)
        shares = torch.tensor([1.0 - self.share, self.share], dtype=torch.float64)
        return Noise(shares, torch.stack([narrow, torch.full_like(narrow, self.wide * self.basis.level)]))

    def describe(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values for a file."""
        tensors = {"weights": self.weights, "x_mean": self.basis.x_mean, "x_scale": self.basis.x_scale}
        names = ("intercept", "least", "most", "factor", "share", "wide", "latent", "usual")
        values = {name: getattr(self, name) for name in names}
        return tensors, values | {name: getattr(self.basis, name) for name in _NUMBERS}

    @staticmethod
    def build(tensors: dict[str, Tensor], values: dict[str, Any]) -> NoiseModel:
        """The model that ``describe`` described."""
        values = dict(values)
        basis = NoiseBasis(
            tensors["x_mean"],
            tensors["x_scale"],
            *(values.pop(name) for name in _NUMBERS),
        )
        return NoiseModel(basis=basis, weights=tensors["weights"], **values)


@dataclass(frozen=True)
class NoiseGain:
    """What noise(x) gains over the best constant noise, in nats per row, on rows that its fit did not see."""

    gain: float
    standard_error: float
    accepted: bool
    n_rows: int  # that decided

    @staticmethod
    def of_members(gains: Sequence[NoiseGain]) -> NoiseGain | None:
        """The mean over members of a mixture, which was accepted where any was; None where none tried."""
        if not gains:
            return None
        gain, error = (float(np.mean([getattr(each, name) for each in gains])) for name in ("gain", "standard_error"))
        return NoiseGain(gain, error, any(each.accepted for each in gains), sum(each.n_rows for each in gains))
