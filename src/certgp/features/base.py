"""What every feature map offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from certgp.kernels import Kernel

Bounds = tuple[float, float]
LOG_SCALE_BOUNDS: Bounds = (-7.0, 9.0)  # e^-7 .. e^9 in units of the standardised inputs


class FeatureMap(nn.Module, ABC):
    r"""phi: R^d -> R^r of a kernel at *unit* signal variance: phi(x)'phi(x') approximates k(x, x') / sf2.

    The map is split as ``Phi = basis(X) mixing()``: the basis is what a pass over the data evaluates, the r x r mixing
    is applied once to the statistics (A -> M' A M). Only Nystrom mixes; for the others the basis is the feature map.
    """

    minorises: ClassVar[bool]  # is Phi Phi' <= K proven for every X?
    group: ClassVar[int] = 1  # features come in groups of this size

    def __init__(self, kernel: Kernel, dimension: int) -> None:
        super().__init__()
        self.kernel_family = type(kernel)
        scales = kernel.length_scale.detach().to(torch.float64).expand(dimension)
        self.log_length_scale = nn.Parameter(scales.log().clone())

    @property
    @abstractmethod
    def rank(self) -> int:
        """r, the number of features."""

    @abstractmethod
    def basis(self, X: Tensor) -> Tensor:
        """Raw features (n, r) of X (n, d). The memory layout is the map's choice."""

    def mixing(self) -> Tensor | None:
        """M (r, r) with Phi = basis(X) M, or None for the identity."""
        return None

    def mixed(self, raw: Tensor) -> Tensor:
        """Phi (n, r) of the raw features (n, r) of some rows."""
        mixing = self.mixing()
        return raw if mixing is None else raw @ mixing.to(raw.dtype)

    def forward(self, X: Tensor) -> Tensor:
        """Phi (n, r) of X (n, d)."""
        return self.mixed(self.basis(X))

    @property
    def kernel(self) -> Kernel:
        """The kernel at unit signal variance and the current length-scales; carries gradients."""
        return self.kernel_family(self.log_length_scale.exp())

    @abstractmethod
    def leading(self, rank: int) -> FeatureMap:
        """The map of the first ``rank`` features at the same parameters: what a smaller rank would have been."""

    def leading_columns(self, rank: int) -> tuple[Tensor, float]:
        """Columns of Phi that ``leading(rank)`` keeps, and the factor by which it multiplies their squares."""
        return torch.arange(rank), 1.0

    def rounding(self) -> float:
        """A bound on how far |phi(x)|^2 in float64 may be above its exact value at any x, beyond the few hundred units
        in the last place that every certificate allows for.
        """
        return 0.0

    def parameter_bounds(self) -> dict[str, Bounds]:
        """Box of each parameter by name; a parameter that is not named is free."""
        return {"log_length_scale": LOG_SCALE_BOUNDS}
