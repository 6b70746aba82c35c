"""What every input transform offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from certgp.methods import find_registered, registered_name

TRANSFORMS: dict[str, type[Transform]] = {}


class Transform(nn.Module, ABC):
    """g: R^D -> R^d, differentiable in its parameters; the GP's kernel acts on g(x)."""

    is_identity: ClassVar[bool] = False
    returns_outliers: ClassVar[bool] = False  # does it pull far-out rows in, and say by how much (``discarded``)?
    keeps_coordinates: ClassVar[bool] = False  # are the coordinates of g(x) those of x, in the same units?

    def __init_subclass__(cls) -> None:
        TRANSFORMS[registered_name(cls)] = cls

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d, the number of coordinates that come out."""

    @property
    def width(self) -> int:
        """Numbers per row that evaluating g holds beside its input and output, so that chunks can be sized."""
        return 0

    @property
    def linear_map(self) -> Tensor | None:
        """W (D, d) where g(x) = (x - m) W; None where g is not a linear map to coordinates of its own."""
        return None

    def discarded(self, X: Tensor) -> Tensor | None:
        """What g throws away of x, as an offset x - g(x) that the kernel can measure; None where nothing is."""
        return None

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """X (n, D) -> (n, d)."""

    def configuration(self) -> dict[str, Any]:
        """What ``build`` needs beside the tensors of ``state_dict``; plain values for JSON."""
        return {"dimension": self.dimension}

    @classmethod
    @abstractmethod
    def build(cls, configuration: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Self:
        """The transform of this configuration and these tensors; ``network`` is the user's own module, if any."""


def describe_transform(transform: Transform) -> dict[str, Any]:
    """The name and the configuration of a transform, for a file."""
    return {"kind": registered_name(type(transform)), **transform.configuration()}


def build_transform(description: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Transform:
    """The transform that ``describe_transform`` described, with these tensors of its ``state_dict``."""
    family = find_registered(description["kind"], TRANSFORMS, "transform")
    transform = family.build(description, tensors, network)
    transform.load_state_dict(tensors)
    return transform
