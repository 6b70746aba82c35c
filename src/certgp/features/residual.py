"""Mercer features completed by inducing points on what they leave: a few far-out rows need not spoil the trace gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from certgp.errors import ModelFileError
from certgp.features.base import FeatureMap, build_features
from certgp.features.mercer import MercerMap
from certgp.features.nystrom import NystromMap
from certgp.kernels import Kernel
from certgp.linalg import UNIT_ROUNDOFF, cholesky, eye_like, solve_lower, solve_rounding

_JITTER = 1e-9
_FEATURE_ROUNDING = 1_000  # units in the last place of an eigenfunction


class ResidualMap(FeatureMap):
    r"""[Psi, R_xz L'^-1] with R = K - Psi Psi' the residual kernel and L L' = R_zz + jitter I, at points Z (p, d).

    R is positive semi-definite, so it dominates its Nystrom part and Psi Psi' + R_xz (R_zz + jitter I)^-1 R_zx <= K.
    Eigenfunctions vanish far outside the bulk of the inputs; a point there takes the rows around it back.
    """

    dominated: ClassVar[bool] = True
    points: Tensor

    def __init__(self, base: MercerMap, points: Tensor) -> None:
        super().__init__(base.fixed_kernel(), points.shape[1])
        self.base = base
        self.register_buffer("points", points)
        with torch.no_grad():
            self._base_at_points = base(points)
            R = self.kernel(points, points) - self._base_at_points @ self._base_at_points.mT
            self._factor = cholesky(R + _JITTER * eye_like(R), "R_zz + jitter I (use fewer residual points)")

    @property
    def rank(self) -> int:
        return self.base.rank + self.points.shape[0]

    def basis(self, X: Tensor) -> Tensor:
        Psi: Tensor = self.base(X)
        R = self.kernel(self.points, X) - self._base_at_points @ Psi.mT  # (p, n)
        return torch.cat([Psi, solve_lower(self._factor, R).mT], dim=1)

    @torch.no_grad()
    def rounding(self) -> float:
        products = (self.base.rank + _FEATURE_ROUNDING) * UNIT_ROUNDOFF  # of the eigenfunctions in R
        return solve_rounding(self._factor, self.kernel.rounding(self.points) + products, _JITTER)

    def leading(self, rank: int) -> FeatureMap:
        if rank <= self.base.rank:
            return self.base.leading(rank)
        return ResidualMap(self.base, self.points[: rank - self.base.rank])

    @property
    def decays(self) -> bool:
        return True

    def settings(self) -> dict[str, Any]:
        return {"base": self.base.describe()}

    @classmethod
    def rebuild(cls, kernel: Kernel, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ResidualMap:
        state = {name.removeprefix("base."): t for name, t in tensors.items() if name.startswith("base.")}
        base = build_features(settings["base"], state)
        if not isinstance(base, MercerMap):
            raise ModelFileError(f"a ResidualMap completes Mercer features, found {type(base).__name__}")
        return ResidualMap(base, tensors["points"])


def add_points(features: FeatureMap, kept: int, points: Tensor, rank: int) -> FeatureMap:
    """Inducing points (p, d) added to a map dominated by its kernel. Mercer features are completed by them. Of a map of
    inducing points the first ``kept`` stay, and of the others as many as ``rank`` leaves room for.
    """
    if isinstance(features, MercerMap):
        return ResidualMap(features, points)
    if not isinstance(features, NystromMap):
        raise TypeError(f"inducing points complete Mercer or Nystrom maps, found {type(features).__name__}")
    own = features.inducing_points.detach()
    others = own[kept : max(rank - len(points), kept)]
    return NystromMap(features.fixed_kernel(), torch.cat([own[:kept], points, others]), jitter=features.jitter)


@torch.no_grad()
def residual_points(base: FeatureMap, candidates: Tensor, count: int, least: float) -> Tensor:
    """At most ``count`` candidates (n, d) by pivoted Cholesky of the residual kernel, while it exceeds ``least``.

    Each is the one that the features and the points before it explain least.
    """
    Psi = base(candidates)
    R = base.fixed_kernel()(candidates, candidates) - Psi @ Psi.mT
    chosen: list[int] = []
    for _ in range(min(count, candidates.shape[0])):
        pivot = int(R.diagonal().argmax())
        size = float(R[pivot, pivot])
        if size <= max(least, 1e-6):
            break
        R = R - torch.outer(R[pivot], R[pivot]) / size
        chosen.append(pivot)
    return candidates[chosen]
