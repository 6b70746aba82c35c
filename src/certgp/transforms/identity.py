"""No transform: the kernel works in the original dimensions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch import Tensor, nn

from certgp.transforms.base import Transform


class Identity(Transform):
    """g(x) = x."""

    is_identity: ClassVar[bool] = True
    keeps_coordinates: ClassVar[bool] = True

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        return self._dimension

    def forward(self, X: Tensor) -> Tensor:
        return X

    @classmethod
    def build(cls, configuration: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Self:
        return cls(configuration["dimension"])
