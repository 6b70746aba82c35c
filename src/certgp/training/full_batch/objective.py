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
from certgp.engines.folds import fold_feature_statistics, fold_statistics
from certgp.gp import LowRankModel, Statistics
from certgp.gp.exact import ExactProfile, profile_exact_evidence
from certgp.gp.profile import NOISE_RATIO_BOUNDS, Profile, profile_evidence
from certgp.gp.statistics import feature_cotangent
from certgp.kernels import Kernel, KernelParameters
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


_Evaluated = tuple[Tensor, Tensor | None, Tensor]  # raw features and the kernel's diagonal, with their graph; targets


@dataclass(frozen=True, eq=False)
class _KeptFeatures:
    """Statistics of some chunks together with what they were computed from."""

    statistics: Statistics
    chunks: tuple[_Evaluated, ...]

    def __add__(self, other: _KeptFeatures) -> _KeptFeatures:
        return _KeptFeatures(self.statistics + other.statistics, self.chunks + other.chunks)


class Criterion(Protocol):
    """A function of the statistics (A, b, Tr K) at one point: its value, and its derivatives by them."""

    @property
    def value(self) -> float: ...
    @property
    def by_gram(self) -> Tensor: ...
    @property
    def by_projection(self) -> Tensor: ...
    @property
    def by_trace(self) -> float: ...


C = TypeVar("C", bound=Criterion)


class FoldedObjective(Objective, Generic[C]):
    r"""A function of the statistics of all rows, and its gradient in the parameters of a low-rank model.

    Fold 1 sums the statistics of the raw basis, and the r x r matrix M of the map mixes them. The r x r algebra gives
    the value and the cotangents G_A = dL/dA, G_b = dL/db. Fold 2 pulls dL/dPhi = 2 Phi G_A + y G_b' back through the
    map, chunk by chunk: only the map itself is differentiated automatically, and memory is one chunk. Where the
    kernel's diagonal varies, dL/d Tr K is pulled back through it in the same fold.

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
        return self._mix(self.raw_statistics())

    def two_folds(self) -> tuple[C, Array]:
        """The criterion at the current parameters, and its gradient (P,) in those of the model."""
        kept = self._fold_and_keep() if self._keep else _KeptFeatures(self.statistics(), ())
        with one_thread_below(self.model.rank):
            found, by_gram, by_projection, direct = self._pull_through_mixing(kept.statistics)
        pulled = self._pull_back(by_gram, by_projection, found.by_trace, kept.chunks)
        return found, ParameterVector.flatten([a + b for a, b in zip(direct, pulled.tensors, strict=True)])

    def _pull_through_mixing(self, statistics: Statistics) -> tuple[C, Tensor, Tensor, list[Tensor]]:
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

    def _fold_and_keep(self) -> _KeptFeatures:
        """Fold 1 that keeps each chunk's raw features, with their graph, and targets."""
        features = self.model.features

        def task(chunk: Chunk) -> _KeptFeatures:
            basis, diagonal, y = evaluated = self._evaluate_chunk(chunk)
            with torch.no_grad():
                folded = features.mix(basis.detach()) if self._mix_rows else basis.detach()
            return _KeptFeatures(Statistics.of(folded, y, diagonal), (evaluated,))

        kept = self.engine.fold(task, self.source, self.model.width)
        return kept if self._mix_rows else _KeptFeatures(self._mix(kept.statistics), kept.chunks)

    def _mix(self, raw: Statistics) -> Statistics:
        with torch.no_grad(), one_thread_below(self.model.rank):
            return raw.mixed(self.model.features.mixing())

    def _evaluate_chunk(self, chunk: Chunk) -> _Evaluated:
        with torch.enable_grad():
            return self.model.basis(chunk.X), self.model.diagonal(chunk.X), chunk.y

    def _pull_back(
        self, by_gram: Tensor, by_projection: Tensor, by_trace: float, kept: tuple[_Evaluated, ...]
    ) -> _GradientSum:
        """Fold 2: sum over chunks of (d basis / d parameters)' (2 Phi G_A + y G_b'), and of the diagonal's share."""
        parameters = self.parameters.tensors

        def pull(evaluated: _Evaluated) -> _GradientSum:
            basis, diagonal, y = evaluated
            outputs, cotangents = [basis], [feature_cotangent(basis.detach(), y, by_gram, by_projection)]
            if diagonal is not None and diagonal.requires_grad:
                outputs, cotangents = [basis, diagonal], [*cotangents, torch.full_like(diagonal, by_trace)]
            grads = torch.autograd.grad(outputs, parameters, cotangents, allow_unused=True)
            pairs = zip(grads, parameters, strict=True)
            return _GradientSum(tuple(torch.zeros_like(p) if g is None else g for g, p in pairs))

        def recompute(chunk: Chunk) -> _GradientSum:
            return pull(self._evaluate_chunk(chunk))

        if kept:
            return sum_over(pull, kept)
        return self.engine.fold(recompute, self.source, self.model.width)


class LowRankObjective(FoldedObjective[Profile]):
    """Negative log evidence or ELBO per row, signal variance and noise profiled out."""

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        return self.parameters.bounds()

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def criterion(self, statistics: Statistics) -> Profile:
        return profile_evidence(statistics, self.objective)

    def profile(self) -> Profile:
        """Optimal signal variance and noise at the current parameters."""
        return self.criterion(self.statistics())

    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        found, gradient = self.two_folds()
        return found.value / self.source.n_rows, gradient / self.source.n_rows


class _ExactParameters(nn.Module):
    """Shape of the kernel and noise ratio of the exact GP."""

    def __init__(self, kernel: Kernel, dimension: int, noise_ratio: float) -> None:
        super().__init__()
        self._kernel_parameters = KernelParameters(kernel, dimension, self)
        self.log_noise_ratio = nn.Parameter(torch.tensor(noise_ratio, dtype=torch.float64).log())

    @property
    def kernel(self) -> Kernel:
        """At unit signal variance; carries gradients."""
        return self._kernel_parameters.kernel(self)

    def lengths(self) -> list[nn.Parameter]:
        """Logarithms of all lengths."""
        return self._kernel_parameters.lengths(self)

    def parameter_bounds(self) -> dict[str, tuple[float, float]]:
        """Box of each parameter by name."""
        low, high = np.log(NOISE_RATIO_BOUNDS)
        return self._kernel_parameters.bounds() | {"log_noise_ratio": (low, high)}


class ExactObjective(Objective):
    """Negative log evidence per row of the exact GP, signal variance profiled out: O(N^3) a call."""

    def __init__(self, kernel: Kernel, rows: Chunk, noise_ratio: float) -> None:
        self.rows = rows
        ratio = float(np.clip(noise_ratio, *NOISE_RATIO_BOUNDS))
        self.module = _ExactParameters(kernel, rows.X.shape[1], ratio)
        self.parameters = ParameterVector(self.module)

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        boxes = self.module.parameter_bounds()
        return [boxes[name] for name, p in self.parameters.named for _ in range(p.numel())]

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def correlation(self) -> Tensor:
        """R = K / sf2 (N, N) at the current parameters; carries gradients."""
        return self.module.kernel(self.rows.X, self.rows.X)

    def _profile(self, R: Tensor) -> ExactProfile:
        return profile_exact_evidence(R, self.rows.y, float(self.module.log_noise_ratio.detach().exp()))

    @torch.no_grad()
    def solution(self) -> tuple[Kernel, float]:
        """Kernel and noise variance at the current parameters, the signal variance at its optimum."""
        signal = self._profile(self.correlation()).signal_variance
        noise = signal * float(self.module.log_noise_ratio.detach().exp())
        return self.module.kernel.with_signal_variance(signal), noise

    @torch.enable_grad()
    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        R = self.correlation()
        p = self._profile(R.detach())
        shape = [tensor for name, tensor in self.parameters.named if name != "log_noise_ratio"]
        by_shape = torch.autograd.grad(R, shape, p.by_correlation)
        gradient = np.append(ParameterVector.flatten(list(by_shape)), p.by_log_ratio)
        return p.value / self.rows.y.shape[0], gradient / self.rows.y.shape[0]
