"""Nystrom features: the kernel seen through a few inducing points (the features of sparse GP regression)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from certgp.errors import InvalidInputError
from certgp.features.base import FeatureMap
from certgp.kernels import Kernel
from certgp.linalg import cholesky, eye_like, solve_lower, solve_rounding

DEFAULT_JITTER = 1e-6


def nystrom_features(kernel: Kernel, X: Tensor, inducing_points: Tensor, jitter: float = DEFAULT_JITTER) -> Tensor:
    """Phi (n, r) of ``NystromMap`` at unit signal variance; carries gradients, also to the inducing points."""
    kzz = kernel.unit(inducing_points, inducing_points)
    L = cholesky(kzz + jitter * eye_like(kzz), "K_zz + jitter I (raise jitter or lower rank)")
    return solve_lower(L, kernel.unit(inducing_points, X)).mT


class NystromMap(FeatureMap):
    r"""Phi = K_xz L'^-1 with L L' = K_zz + jitter I, for inducing points Z (r, d).

    Phi Phi' = K_xz (K_zz + jitter I)^-1 K_zx <= K_xz K_zz^+ K_zx <= K: the jitter belongs to the definition, and the
    map is dominated by the kernel for every Z and every jitter >= 0.
    """

    dominated: ClassVar[bool] = True

    def __init__(
        self, kernel: Kernel, inducing_points: Tensor, *, jitter: float = DEFAULT_JITTER, learn_inducing: bool = True
    ) -> None:
        super().__init__(kernel, inducing_points.shape[1])
        if not jitter >= 0.0:
            raise InvalidInputError(f"jitter must not be negative, found {jitter!r}: the map would exceed the kernel")
        self.jitter = jitter
        self.inducing_points = nn.Parameter(inducing_points.clone(), requires_grad=learn_inducing)

    @property
    def rank(self) -> int:
        return self.inducing_points.shape[0]

    def basis(self, X: Tensor) -> Tensor:
        return self.kernel.unit(X, self.inducing_points.to(X.dtype))

    def leading(self, rank: int) -> NystromMap:
        return NystromMap(self.fixed_kernel(), self.inducing_points.detach()[:rank], jitter=self.jitter)

    @property
    def decays(self) -> bool:
        return len(self.fixed_kernel().decaying_columns(self.dimension)) == self.dimension

    def prior(self) -> Tensor:
        """K_zz + jitter I (r, r) at unit signal variance."""
        kzz = self.kernel(self.inducing_points, self.inducing_points)
        return kzz + self.jitter * eye_like(kzz)

    def _factor(self) -> Tensor:
        """L (r, r), lower triangular, with L L' = K_zz + jitter I."""
        return cholesky(self.prior(), "K_zz + jitter I (raise jitter or lower rank)")

    @torch.no_grad()
    def rounding(self) -> float:
        entries = self.kernel.rounding(self.inducing_points)
        return solve_rounding(self._factor(), entries, self.jitter)

    def mixing(self) -> Tensor:
        """L'^-1 (r, r), upper triangular."""
        L = self._factor()
        return solve_lower(L, eye_like(L)).mT

    def mix(self, raw: Tensor) -> Tensor:
        """Phi (n, r) by one triangular solve, which is more accurate than the product with an explicit inverse."""
        return solve_lower(self._factor().to(raw.dtype), raw.mT).mT

    def settings(self) -> dict[str, Any]:
        return {"jitter": self.jitter}
