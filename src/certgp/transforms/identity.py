"""No transform: the kernel works in the original dimensions."""

from __future__ import annotations

from torch import Tensor

from certgp.transforms.base import Transform


class Identity(Transform):
    """g(x) = x."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        return self._dimension

    def forward(self, X: Tensor) -> Tensor:
        return X
