"""Winsorised inputs: far-out values are pulled to the edge of the bulk."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from certgp.transforms.base import Transform


class Clip(Transform):
    """g(x)_j = min(max(x_j, lower_j), upper_j).

    Features that do not decay (cos, sin) extrapolate wildly from a few outlying rows; inside the box nothing changes.
    """

    keeps_coordinates: ClassVar[bool] = True
    returns_outliers: ClassVar[bool] = True
    lower: Tensor
    upper: Tensor

    def __init__(self, lower: Tensor, upper: Tensor) -> None:
        super().__init__()
        self.register_buffer("lower", lower)
        self.register_buffer("upper", upper)

    @staticmethod
    def at_quantiles(X: Tensor, tail: float) -> Clip:
        """Edges at order statistics that leave at most a fraction ``tail`` of the rows of X (n, D) outside a side."""
        ordered = torch.sort(X, dim=0).values
        outside = int(tail * X.shape[0])
        lower, upper = ordered[outside], ordered[X.shape[0] - 1 - outside]
        margin = 0.01 * (upper - lower)  # so that the edges are no rows of the data
        return Clip(lower - margin, upper + margin)

    @property
    def dimension(self) -> int:
        return self.lower.shape[0]

    def discarded(self, X: Tensor) -> Tensor:
        """How far each row (n, D) lies outside the box, per dimension."""
        return X - self.forward(X)

    def forward(self, X: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(X, self.lower.to(X.dtype)), self.upper.to(X.dtype))

    @classmethod
    def build(cls, configuration: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Self:
        return cls(tensors["lower"], tensors["upper"])
