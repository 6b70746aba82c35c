"""What every input transform offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Transform(nn.Module, ABC):
    """g: R^D -> R^d, differentiable in its parameters; the GP's kernel acts on g(x)."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d, the number of coordinates that come out."""

    @property
    def width(self) -> int:
        """Numbers per row that evaluating g holds beside its input and output, so that chunks can be sized."""
        return 0

    def discarded(self, X: Tensor) -> Tensor | None:
        """What g throws away of x, as an offset x - g(x) that the kernel can measure; None where nothing is."""
        return None

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """X (n, D) -> (n, d)."""
