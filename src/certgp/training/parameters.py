"""The trainable parameters of a module as one flat vector with bounds."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.features import FeatureMap

Array = NDArray[np.float64]


class ParameterVector:
    """Reads and writes all parameters that require gradients; SciPy sees float64 numbers only."""

    def __init__(self, module: nn.Module) -> None:
        self.named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        self._bounds = _bounds_by_name(module)

    @property
    def tensors(self) -> list[nn.Parameter]:
        """The parameters themselves, in the order of the vector."""
        return [p for _, p in self.named]

    def get(self) -> Array:
        """Current values (P,)."""
        return self.flatten([p.detach() for p in self.tensors])

    @torch.no_grad()
    def set(self, values: Array) -> None:
        """Write values (P,) into the module."""
        start = 0
        for p in self.tensors:
            part = torch.from_numpy(values[start : start + p.numel()].reshape(tuple(p.shape)).copy())
            p.copy_(part.to(p.dtype))
            start += p.numel()

    def set_gradient(self, values: Array) -> None:
        """Write a gradient (P,) into the parameters' ``grad``, for torch's optimisers."""
        start = 0
        for p in self.tensors:
            part = torch.from_numpy(values[start : start + p.numel()].reshape(tuple(p.shape)).copy())
            p.grad = part.to(p.dtype)
            start += p.numel()

    def bounds(self) -> list[tuple[float, float]]:
        """Box of every number of the vector."""
        free = (-np.inf, np.inf)
        return [self._bounds.get(name, free) for name, p in self.named for _ in range(p.numel())]

    def labels(self) -> list[str]:
        """For every number of the vector, the name of the parameter that it belongs to."""
        return [name for name, p in self.named for _ in range(p.numel())]

    @staticmethod
    def flatten(tensors: list[Tensor]) -> Array:
        """Tensors as one float64 vector."""
        return np.concatenate([t.double().numpy().ravel() for t in tensors]) if tensors else np.zeros(0)


def _bounds_by_name(module: nn.Module) -> dict[str, tuple[float, float]]:
    """Bounds that the submodules declare for their own parameters, under the parameters' full names."""
    return {
        f"{prefix}.{name}" if prefix else name: bound
        for prefix, child in module.named_modules()
        if isinstance(child, FeatureMap)
        for name, bound in child.parameter_bounds().items()
    }
