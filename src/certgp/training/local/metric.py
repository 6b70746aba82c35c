"""Where distances come from: what is learned of them, as modules that map rows to the kernel's inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from certgp.gp.profile import NOISE_RATIO_BOUNDS
from certgp.kernels import Kernel, KernelParameters
from certgp.kernels.parameters import VARIANCE, Bounds
from certgp.transforms import Identity, Projection, Transform

NOISE_BOUNDS = (1e-8, NOISE_RATIO_BOUNDS[1])  # s2 / sf2: near rows alone are never as ill conditioned as all rows


class Metric(nn.Module, ABC):
    """A map g and a unit kernel on g(x), with the noise ratio g = s2 / sf2 and the signal variance."""

    def __init__(self, signal_variance: float, noise_ratio: float) -> None:
        super().__init__()
        ratio = float(np.clip(noise_ratio, *NOISE_BOUNDS))
        self.log_signal = nn.Parameter(torch.tensor(signal_variance, dtype=torch.float64).log())
        self.log_ratio = nn.Parameter(torch.tensor(ratio, dtype=torch.float64).log())

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """At unit signal variance; carries gradients."""

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """g(x), (n, D) -> (n, d); carries gradients."""

    @abstractmethod
    def result(self) -> tuple[Transform, Kernel]:
        """The transform and the kernel, at its signal variance, that predict."""

    def shape_bounds(self) -> dict[str, Bounds]:
        """Boxes of the parameters that have one, beside the two variances."""
        return {}

    def parameter_bounds(self) -> dict[str, Bounds]:
        """Boxes of the parameters that have one."""
        assert VARIANCE.log_bounds is not None
        low, high = np.log(NOISE_BOUNDS)
        return self.shape_bounds() | {"log_signal": VARIANCE.log_bounds, "log_ratio": (low, high)}

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of all parameters, for ``load_state_dict``."""
        return {name: tensor.detach().clone() for name, tensor in self.state_dict().items()}

    @property
    def signal(self) -> float:
        """sf2."""
        return float(self.log_signal.detach().exp())

    @property
    def ratio(self) -> float:
        """s2 / sf2."""
        return float(self.log_ratio.detach().exp())

    @torch.no_grad()
    def set_variances(self, signal_variance: float, noise_ratio: float) -> None:
        """Go on from these variances."""
        self.log_signal.fill_(float(np.log(signal_variance)))
        self.log_ratio.fill_(float(np.log(noise_ratio)))


class ScaledMetric(Metric):
    """g(x) = x: the kernel has a length-scale per column, and whatever else it learns."""

    def __init__(self, kernel: Kernel, dimension: int, noise_ratio: float) -> None:
        super().__init__(float(kernel.signal_variance), noise_ratio)
        self._dimension = dimension
        self._shape = KernelParameters(kernel, dimension, self)

    @property
    def kernel(self) -> Kernel:
        return self._shape.kernel(self)

    def forward(self, X: Tensor) -> Tensor:
        return X

    def result(self) -> tuple[Transform, Kernel]:
        return Identity(self._dimension), self._shape.kernel(self, detached=True).with_signal_variance(self.signal)

    def shape_bounds(self) -> dict[str, Bounds]:
        return self._shape.bounds()

    def lengths(self) -> list[nn.Parameter]:
        """Logarithms of all lengths."""
        return self._shape.lengths(self)


class LinearMetric(Metric):
    r"""g(x) = x W with W (D, p) = diag(s) T: distances |W'(x - x')| in a learned linear map.

    It starts at the p shortest length-scales of an ARD fit, W = [e_j / l_j]. Row scales s_j = max(1 / l_j, floor) let
    all entries of T move at a like rate.
    """

    def __init__(
        self, kernel: Kernel, length_scale: Tensor, columns: int, noise_ratio: float, floor: float = 0.02
    ) -> None:
        super().__init__(float(kernel.signal_variance), noise_ratio)
        inverse = length_scale.detach().reciprocal()
        scale = torch.maximum(inverse, floor * inverse.max())
        order = torch.argsort(length_scale)[:columns]
        start = torch.zeros((len(inverse), columns), dtype=torch.float64)
        start[order, torch.arange(columns)] = inverse[order] / scale[order]
        self._kernel = kernel.replace(
            length_scale=torch.ones(columns, dtype=torch.float64), signal_variance=1.0
        ).detached()
        self._row_scale = scale
        self.weights = nn.Parameter(start)

    @property
    def kernel(self) -> Kernel:
        return self._kernel

    @property
    def linear_map(self) -> Tensor:
        """W (D, p)."""
        return self._row_scale[:, None] * self.weights

    def forward(self, X: Tensor) -> Tensor:
        return X @ self.linear_map

    def result(self) -> tuple[Transform, Kernel]:
        """As a projection to coordinates of unit variance, whose length-scales are what they were divided by."""
        W = self.linear_map.detach()
        d = len(W)
        norms = W.norm(dim=0)
        unit = Projection(W, torch.zeros(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64))
        return unit.requires_grad_(False), self._kernel.replace(length_scale=1.0 / norms, signal_variance=self.signal)
