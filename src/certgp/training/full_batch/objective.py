"""The full-data objectives of low-rank and exact GPs, with their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from certgp.data import Chunk, RowSource
from certgp.engines import Engine
from certgp.gp import LowRankModel
from certgp.gp.exact import ExactProfile, profile_exact_evidence
from certgp.gp.outputs import AnyProfile, AnyStatistics, profile_any
from certgp.gp.profile import NOISE_RATIO_BOUNDS
from certgp.kernels import Kernel, KernelParameters
from certgp.training.full_batch.two_folds import TwoFolds
from certgp.training.parameters import Array, ParameterVector


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


class LowRankObjective(Objective):
    """Negative log evidence or ELBO per target of a low-rank model, signal variance and noise profiled out; of several
    outputs their sum.

    Of a random subset that stands for N rows it is an estimate of theirs, from N / n times its statistics: what does
    not grow with the rows (log|B| and the size of the weights) has the part in it that it has among all rows.
    """

    def __init__(self, model: LowRankModel, source: RowSource, engine: Engine, objective: str) -> None:
        self.model = model
        self.folds = TwoFolds(model, source, engine)
        self.parameters = self.folds.parameters
        self._objective = objective
        self._times = 1.0 if source.stands_for is None else source.stands_for / source.n_rows

    def start(self) -> Array:
        return self.parameters.get()

    def bounds(self) -> list[tuple[float, float]]:
        return self.parameters.bounds()

    def move_to(self, values: Array) -> None:
        self.parameters.set(values)

    def sharpen(self) -> bool:
        return self.folds.sharpen()

    def profile(self) -> AnyProfile:
        """Optimal signal variance and noise at the current parameters."""
        return self._profile(self.folds.statistics())

    def evaluate(self, values: Array) -> tuple[float, Array]:
        self.move_to(values)
        found, gradient = self.folds.differentiate(self._profile)
        return found.value / found.count, self._times * gradient / found.count

    def _profile(self, statistics: AnyStatistics) -> AnyProfile:
        return profile_any(statistics.repeated(self._times), self._objective)


class ShiftedObjective(Objective):
    """f(t) + shift' (t - origin): an objective on some rows with the gradient that all rows have at the origin."""

    def __init__(self, objective: Objective, shift: Array, origin: Array) -> None:
        self._objective, self._shift, self._origin = objective, shift, origin

    def start(self) -> Array:
        return self._objective.start()

    def bounds(self) -> list[tuple[float, float]]:
        return self._objective.bounds()

    def move_to(self, values: Array) -> None:
        self._objective.move_to(values)

    def sharpen(self) -> bool:
        return self._objective.sharpen()

    def evaluate(self, values: Array) -> tuple[float, Array]:
        value, gradient = self._objective.evaluate(values)
        return value + float(self._shift @ (values - self._origin)), gradient + self._shift


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

    @torch.no_grad()
    def value(self) -> float:
        """At the current parameters, without the gradient."""
        return self._profile(self.correlation()).value / self.rows.y.shape[0]

    def _profile(self, R: Tensor) -> ExactProfile:
        ratio = float(self.module.log_noise_ratio.detach().exp())
        return profile_exact_evidence(R, self.rows.y, ratio, self.rows.weight)

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
