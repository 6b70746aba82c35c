"""The exact full-data objective and gradient, in two folds over the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from certgp.data import Chunk, RowSource
from certgp.engines import Engine, one_thread_below, sum_over
from certgp.gp import LowRankModel, NoiseRatioBounds, Statistics
from certgp.gp.exact import ExactProfile, profile_exact_evidence
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS, Profile, profile_evidence
from certgp.gp.statistics import feature_cotangent
from certgp.kernels import Kernel
from certgp.training.parameters import Array, ParameterVector

_KEPT_BYTES = 1 << 29
_KEPT_ROWS = 1 << 18  # of more rows, memory belongs to the rows themselves
_KEPT_COPIES = 3  # arrays of the size of the features that a graph holds


class Objective(ABC):
    """A smooth function of a flat parameter vector, per row of data; lower is better."""

    @abstractmethod
    def start(self) -> Array:
        """The current parameters (P,)."""

    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """Box of each parameter."""

    @abstractmethod
    def move_to(self, values: Array) -> None:
        """Make these parameters (P,) the current ones."""

    @abstractmethod
    def evaluate(self, values: Array) -> tuple[float, Array]:
        """Value and gradient (P,) at given parameters, which become the current ones."""

    def sharpen(self) -> bool:
        """Evaluate with less rounding error from now on, at a higher price; False where there is no such way."""
        return False


@dataclass(frozen=True, eq=False)
class _GradientSum:
    """Parameter gradients of some chunks; they merge by +."""

    tensors: tuple[Tensor, ...]

    def __add__(self, other: _GradientSum) -> _GradientSum:
        return _GradientSum(tuple(a + b for a, b in zip(self.tensors, other.tensors, strict=True)))


@dataclass(frozen=True, eq=False)
class _KeptFeatures:
    """Statistics of some chunks together with their features (which carry a graph) and targets."""

    statistics: Statistics
    chunks: tuple[tuple[Tensor, Tensor], ...]

    def __add__(self, other: _KeptFeatures) -> _KeptFeatures:
        return _KeptFeatures(self.statistics + other.statistics, self.chunks + other.chunks)


class Criterion(Protocol):
    """A function of the statistics (A, b) at one point: its value, and its cotangents G_A = dL/dA, G_b = dL/db."""

    @property
    def value(self) -> float: ...
    @property
    def by_gram(self) -> Tensor: ...
    @property
    def by_projection(self) -> Tensor: ...


C = TypeVar("C", bound=Criterion)


class FoldedObjective(Objective, Generic[C]):
    r"""A function of the statistics of all rows, and its gradient in the parameters of a low-rank model.

    Fold 1 sums the statistics of the raw basis, and the r x r matrix M of the map mixes them. The r x r algebra gives
    the value and the cotangents G_A = dL/dA, G_b = dL/db. Fold 2 pulls dL/dPhi = 2 Phi G_A + y G_b' back through the
    map, chunk by chunk: only the map itself is differentiated automatically, and memory is one chunk.

    Mixing the statistics (A = M' A_raw M, at r x r) is cheap, but the rounding of A_raw, about 1e-16 N, comes out
    multiplied by |M|^2, up to 1 / jitter: with a signal variance of 250 the value then jumps by 1e-5 per row between
    points 1e-11 apart, and line searches fail. Once ``sharpen``\ ed, fold 1 mixes the features of each row instead
    (A = sum of (Phi M)' (Phi M), one more product per evaluation), and A_raw is not needed at all.
    """

    def __init__(self, model: LowRankModel, source: RowSource, engine: Engine, objective: str) -> None:
        self.model = model
        self.source = source
        self.engine = engine
        self.objective = objective
        self.parameters = ParameterVector(model)
        self._mix_rows = False
        # where the features of all rows fit, the second fold need not compute them again
        needed = _KEPT_COPIES * 8 * source.n_rows * model.width
        self._keep = engine.in_process and source.n_rows <= _KEPT_ROWS and needed <= _KEPT_BYTES

    @abstractmethod
    def criterion(self, statistics: Statistics) -> C:
        """The function itself, of the statistics of unit-variance features."""

    def sharpen(self) -> bool:
        if self._mix_rows or self.model.features.mixing() is None:
            return False
        self._mix_rows = True
        return True

    def raw_statistics(self) -> Statistics:
        """Statistics of the raw basis at the current parameters."""
        return fold_statistics(self.model, self.source, self.engine)

    def statistics(self) -> Statistics:
        """Statistics of the features at the current parameters."""
        if self._mix_rows:
            return fold_feature_statistics(self.model, self.source, self.engine)
        return self._mixed(self.raw_statistics())

    def two_folds(self) -> tuple[C, Array]:
        """The criterion at the current parameters, and its gradient (P,) in those of the model."""
        kept = self._kept_features() if self._keep else _KeptFeatures(self.statistics(), ())
        with one_thread_below(self.model.rank):
            found, by_gram, by_projection, direct = self._through_mixing(kept.statistics)
        pulled = self._pull_back(by_gram, by_projection, kept.chunks)
        return found, ParameterVector.flatten([a + b for a, b in zip(direct, pulled.tensors, strict=True)])

    def _through_mixing(self, statistics: Statistics) -> tuple[C, Tensor, Tensor, list[Tensor]]:
        """Criterion, cotangents of the raw statistics, and the gradient that flows through the mixing matrix alone."""
        zeros = [torch.zeros_like(p) for p in self.parameters.tensors]
        p = self.criterion(statistics)
        mixing = self.model.features.mixing()
        if mixing is None:
            return p, p.by_gram, p.by_projection, zeros
        with torch.no_grad():
            M = mixing.detach()
            # A = M' A_raw M and b = M' b_raw, so dL/dM = 2 A_raw M G_A + b_raw G_b' = M'^-1 (2 A G_A + b G_b')
            by_mixing = 2.0 * statistics.A @ p.by_gram + torch.outer(statistics.b, p.by_projection)
            by_mixing = torch.linalg.solve(M.mT, by_mixing)
            by_gram, by_projection = M @ p.by_gram @ M.mT, M @ p.by_projection
        grads = torch.autograd.grad(mixing, self.parameters.tensors, by_mixing, allow_unused=True)
        direct = [z if g is None else g for z, g in zip(zeros, grads, strict=True)]
        return p, by_gram, by_projection, direct

    def _kept_features(self) -> _KeptFeatures:
        """Fold 1 that keeps each chunk's raw features, with their graph, and targets."""
        features = self.model.features

        def task(chunk: Chunk) -> _KeptFeatures:
            with torch.enable_grad():
                basis = self.model.basis(chunk.X)
            with torch.no_grad():
                folded = features.mixed(basis.detach()) if self._mix_rows else basis.detach()
            return _KeptFeatures(Statistics.of(folded, chunk.y), ((basis, chunk.y),))

        kept = self.engine.fold(task, self.source, self.model.width)
        return kept if self._mix_rows else _KeptFeatures(self._mixed(kept.statistics), kept.chunks)

    def _mixed(self, raw: Statistics) -> Statistics:
        with torch.no_grad(), one_thread_below(self.model.rank):
            return raw.mixed(self.model.features.mixing())

    def _pull_back(
        self, by_gram: Tensor, by_projection: Tensor, kept: tuple[tuple[Tensor, Tensor], ...]
    ) -> _GradientSum:
        """Fold 2: sum over chunks of (d basis / d parameters)' (2 Phi G_A + y G_b')."""
        parameters = self.parameters.tensors

        def pull(features: tuple[Tensor, Tensor]) -> _GradientSum:
            basis, y = features
            cotangent = feature_cotangent(basis.detach(), y, by_gram, by_projection)
            grads = torch.autograd.grad(basis, parameters, cotangent, allow_unused=True)
            pairs = zip(grads, parameters, strict=True)
            return _GradientSum(tuple(torch.zeros_like(p) if g is None else g for g, p in pairs))

        def recompute(chunk: Chunk) -> _GradientSum:
            with torch.enable_grad():
                basis = self.model.basis(chunk.X)
            return pull((basis, chunk.y))

        if kept:
            return sum_over(pull, kept)
        return self.engine.fold(recompute, self.source, self.model.width)


class LowRankObjective(FoldedObjective[Profile]):
    """Negative log evidence or ELBO per row, signal variance and noise profiled out."""

    def __init__(
        self,
        model: LowRankModel,
        source: RowSource,
        engine: Engine,
        objective: str,
        noise_bounds: NoiseRatioBounds = DEFAULT_NOISE_RATIO_BOUNDS,
    ) -> None:
        super().__init__(model, source, engine, objective)
        self.noise_bounds = noise_bounds

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        return self.parameters.bounds()

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def criterion(self, statistics: Statistics) -> Profile:
        return profile_evidence(statistics, self.objective, self.noise_bounds)

    def profile(self) -> Profile:
        """Optimal signal variance and noise at the current parameters."""
        return self.criterion(self.statistics())

    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        found, gradient = self.two_folds()
        return found.value / self.source.n_rows, gradient / self.source.n_rows


class _ExactParameters(nn.Module):
    """Length-scales and noise ratio of the exact GP."""

    def __init__(self, kernel: Kernel, dimension: int, noise_ratio: float) -> None:
        super().__init__()
        scales = kernel.length_scale.detach().expand(dimension)
        self.log_length_scale = nn.Parameter(scales.log().clone())
        self.log_noise_ratio = nn.Parameter(torch.tensor(noise_ratio, dtype=torch.float64).log())


class ExactObjective(Objective):
    """Negative log evidence per row of the exact GP, signal variance profiled out: O(N^3) a call."""

    def __init__(
        self,
        kernel: Kernel,
        rows: Chunk,
        noise_ratio: float,
        noise_bounds: NoiseRatioBounds,
        scale_bounds: tuple[float, float],
    ) -> None:
        self.family = type(kernel)
        self.rows = rows
        ratio = float(np.clip(noise_ratio, *noise_bounds))
        self.module = _ExactParameters(kernel, rows.X.shape[1], ratio)
        self.parameters = ParameterVector(self.module)
        self._boxes = {"log_length_scale": scale_bounds, "log_noise_ratio": tuple(np.log(noise_bounds))}

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        return [self._boxes[name] for name, p in self.parameters.named for _ in range(p.numel())]

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def correlation(self) -> Tensor:
        """R (N, N) at the current length-scales; carries gradients."""
        unit = self.family(self.module.log_length_scale.exp())
        return unit(self.rows.X, self.rows.X)

    def _profile(self, R: Tensor) -> ExactProfile:
        return profile_exact_evidence(R, self.rows.y, float(self.module.log_noise_ratio.detach().exp()))

    @torch.no_grad()
    def solution(self) -> tuple[Kernel, float]:
        """Kernel and noise variance at the current parameters, the signal variance at its optimum."""
        signal = self._profile(self.correlation()).signal_variance
        return self.family(self.module.log_length_scale.exp(), signal), signal * float(
            self.module.log_noise_ratio.detach().exp()
        )

    @torch.enable_grad()
    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        R = self.correlation()
        p = self._profile(R.detach())
        (by_scale,) = torch.autograd.grad(R, [self.module.log_length_scale], p.by_correlation)
        gradient = np.append(by_scale.numpy(), p.by_log_ratio)
        return p.value / self.rows.y.shape[0], gradient / self.rows.y.shape[0]


def fold_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Fold 1: statistics of the raw basis over all chunks."""

    @torch.no_grad()
    def task(chunk: Chunk) -> Statistics:
        return Statistics.of(model.basis(chunk.X), chunk.y)

    return engine.fold(task, source, model.width)


def fold_feature_statistics(model: LowRankModel, source: RowSource, engine: Engine) -> Statistics:
    """Statistics of the features themselves: for Nystrom more accurate than mixing the raw ones, at one more solve a
    chunk.
    """

    @torch.no_grad()
    def task(chunk: Chunk) -> Statistics:
        return Statistics.of(model(chunk.X), chunk.y)

    return engine.fold(task, source, model.width)
