"""What every feature map offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from certgp.kernels import Kernel, KernelParameters, kernel_from_description, kernel_from_name
from certgp.kernels.parameters import Bounds
from certgp.methods import find_registered, registered_name

FEATURE_MAPS: dict[str, type[FeatureMap]] = {}


class FeatureMap(nn.Module, ABC):
    r"""phi: R^d -> R^r of a kernel at *unit* signal variance: phi(x)'phi(x') approximates k(x, x') / sf2.

    The map is split as ``Phi = basis(X) mixing()``: the basis is what a pass over the data evaluates, the r x r mixing
    is applied once to the statistics (A -> M' A M). Only Nystrom mixes; for the others the basis is the feature map.
    """

    dominated: ClassVar[bool]  # is Phi Phi' <= K proven for every X?
    chooses_indices: ClassVar[bool] = False  # can its index set be chosen anew?
    group: ClassVar[int] = 1  # features come in groups of this size

    def __init__(self, kernel: Kernel, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension  # d
        self._kernel_parameters = KernelParameters(kernel, dimension, self)

    def __init_subclass__(cls) -> None:
        FEATURE_MAPS[registered_name(cls)] = cls

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

    def mix(self, raw: Tensor) -> Tensor:
        """Phi (n, r) of the raw features (n, r) of some rows."""
        mixing = self.mixing()
        return raw if mixing is None else raw @ mixing.to(raw.dtype)

    def forward(self, X: Tensor) -> Tensor:
        """Phi (n, r) of X (n, d)."""
        return self.mix(self.basis(X))

    # -------------------- the kernel

    @property
    def kernel(self) -> Kernel:
        """The kernel at unit signal variance and the current parameters; carries gradients."""
        return self._kernel_parameters.kernel(self)

    def fixed_kernel(self) -> Kernel:
        """The same without gradients."""
        return self._kernel_parameters.kernel(self, detached=True)

    def lengths(self) -> list[nn.Parameter]:
        """The logarithms of all lengths of the kernel: what a change of the inputs' scale would shift."""
        return self._kernel_parameters.lengths(self)

    def parameter_bounds(self) -> dict[str, Bounds]:
        """Box of each parameter by name; a parameter that is not named is free."""
        return self._kernel_parameters.bounds()

    # -------------------- capabilities

    @property
    def approximates_kernel(self) -> bool:
        """Does Phi Phi' approximate the kernel matrix, so that there is an exact GP to compare with?"""
        return True

    @property
    def decays(self) -> bool:
        """Do the features vanish far outside the data?"""
        return False

    def choose_indices(self, rank: int) -> None:
        """Choose the index set of ``rank`` features anew for the current parameters; a map without one stays as it is.

        Between two calls the set is frozen: the objective is smooth inside an optimiser run and may step when the set
        changes.
        """

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

    # -------------------- files

    def describe(self) -> dict[str, Any]:
        """Registered name, kernel, size and settings as JSON-able values, for ``build_features``."""
        size = {"dimension": self.dimension, "rank": self.rank}
        return {"kind": registered_name(type(self)), "kernel": self.fixed_kernel().describe()} | size | self.settings()

    def settings(self) -> dict[str, Any]:
        """What ``rebuild`` needs to know beside kernel, size and the tensors of the state, as JSON-able values."""
        return {}

    @classmethod
    def rebuild(cls, kernel: Kernel, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FeatureMap:
        """The map of a description with room for these tensors, which are loaded into it afterwards.

        Unless a map says otherwise, its constructor is given what it names: the kernel, settings, ``dimension``,
        ``rank``, tensors of the state.
        """
        known = {**tensors, **settings, "kernel": kernel}
        return cls(**{name: known[name] for name in signature(cls).parameters if name in known})


def build_features(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FeatureMap:
    """The map that ``FeatureMap.describe`` described, with the tensors of its ``state_dict``.

    Files of format 2 name the kernel alone, one of the families that have length-scales and nothing else.
    """
    kernel = description["kernel"]
    if isinstance(kernel, str):
        known: Kernel = kernel_from_name(kernel)(tensors["log_length_scale"].exp())
    else:
        known = kernel_from_description(kernel)
    features = find_registered(description["kind"], FEATURE_MAPS, "feature map").rebuild(known, description, tensors)
    features.load_state_dict(dict(tensors))
    return features
