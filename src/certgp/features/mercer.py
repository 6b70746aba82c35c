"""Mercer features: the largest terms of the Gaussian kernel's eigen-expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.errors import InvalidInputError
from certgp.features.base import FeatureMap
from certgp.features.index_sets import (
    IndexSet,
    box_indices,
    eigenvalue_tail,
    optimal_indices,
    total_degree_indices,
)
from certgp.kernels import Kernel, MercerExpansion
from certgp.kernels.parameters import Bounds, as_positive
from certgp.kernels.products import ProductPlan

INDEX_SETS = ("optimal", "total_degree", "box")


class MercerMap(FeatureMap):
    r"""phi_k(x) = prod_j sqrt(lambda_{k_j}) e_{k_j}(x_j - c_j) for k in an index set.  [paper, sec. 4.2; theory sec.
    1, 2]

    Dropping terms of sum_k phi_k phi_k' = K leaves K - Phi Phi' >= 0 for *every* X, index set, centre and input scale:
    the map is dominated by the kernel. The input scale s_j (the standard deviation of the measure under which the
    functions are orthonormal) only decides how fast the expansion converges, so it may be tuned freely.
    """

    dominated: ClassVar[bool] = True
    chooses_indices: ClassVar[bool] = True
    centre: Tensor
    indices: Tensor

    def __init__(
        self,
        kernel: Kernel,
        input_scale: NDArray[np.float64] | Tensor,
        rank: int,
        index_set: str = "optimal",
        centre: Tensor | None = None,
        *,
        dimension: int | None = None,
    ) -> None:
        scale = as_positive("input_scale", torch.as_tensor(input_scale, dtype=torch.float64))
        expansion = kernel.mercer(scale)  # a kernel without one refuses here, with its reason
        d = dimension or max(scale.numel(), expansion.length_scale.numel())
        super().__init__(kernel, d)
        self.log_input_scale = nn.Parameter(scale.expand(d).log().clone())
        self.register_buffer("centre", torch.zeros(d, dtype=torch.float64) if centre is None else centre)
        self.register_buffer("indices", torch.zeros((0, d), dtype=torch.int64))
        self.index_set = index_set
        self.choose_indices(rank)

    @property
    def rank(self) -> int:
        return self.indices.shape[0]

    @property
    def expansion(self) -> MercerExpansion:
        """The eigen-expansion at the current length-scales and input scales; carries gradients."""
        return self.kernel.mercer(self.log_input_scale.exp())

    @torch.no_grad()
    def choose_indices(self, rank: int) -> None:
        self.set_indices(_choose_named(self.index_set, self.expansion.ratio.numpy(), rank))

    def set_indices(self, indices: IndexSet) -> None:
        """Use this set of multi-indices (r, d)."""
        if len(np.unique(indices, axis=0)) != len(indices):
            raise InvalidInputError("an index set must not hold a multi-index twice: the map would exceed the kernel")
        self.indices = torch.as_tensor(indices, dtype=torch.int64)
        self._plan = ProductPlan.of(indices)

    @torch.no_grad()
    def tail(self) -> float:
        """Sum of the dropped eigenvalues, relative to the signal variance."""
        return eigenvalue_tail(self.expansion.ratio.numpy(), self.indices.numpy())

    def basis(self, X: Tensor) -> Tensor:
        return self.expansion.weighted_functions(X - self.centre.to(X.dtype), self._plan).mT

    def leading(self, rank: int) -> MercerMap:
        scale = self.log_input_scale.detach().exp()
        part = MercerMap(self.fixed_kernel(), scale, 1, self.index_set, self.centre)
        part.set_indices(self.indices[:rank].numpy())
        return part

    def parameter_bounds(self) -> dict[str, Bounds]:
        return super().parameter_bounds() | {"log_input_scale": (-3.0, 3.0)}

    @property
    def decays(self) -> bool:
        return True

    def settings(self) -> dict[str, Any]:
        return {"index_set": self.index_set}

    @classmethod
    def rebuild(cls, kernel: Kernel, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> MercerMap:
        return MercerMap(kernel, tensors["log_input_scale"].exp(), 1, settings["index_set"])

    def _load_from_state_dict(self, state_dict: Mapping[str, Tensor], prefix: str, *rest: Any) -> None:
        """A state brings its own index set, of whatever size."""
        if f"{prefix}indices" in state_dict:
            self.set_indices(state_dict[f"{prefix}indices"].numpy())
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _choose_named(index_set: str, ratios: NDArray[np.float64], rank: int) -> IndexSet:
    if index_set == "optimal":
        return optimal_indices(ratios, rank)
    if index_set == "total_degree":
        return total_degree_indices(len(ratios), rank)
    if index_set == "box":
        return box_indices(len(ratios), rank)
    raise InvalidInputError(f"unknown index_set {index_set!r}; choose one of {', '.join(INDEX_SETS)}")
