"""Mercer features completed by inducing points on what they leave: a few far-out rows need not spoil the trace gap."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from certgp.features.base import FeatureMap
from certgp.features.mercer import MercerMap
from certgp.linalg import UNIT_ROUNDOFF, cholesky, eye_like, solve_lower, solve_rounding

_JITTER = 1e-9
_FEATURE_ROUNDING = 1_000  # units in the last place of an eigenfunction


class ResidualMap(FeatureMap):
    r"""[Psi, R_xz L'^-1] with R = K - Psi Psi' the residual kernel and L L' = R_zz + jitter I, at points Z (p, d).

    R is positive semi-definite, so its Nystrom part is below it and Psi Psi' + R_xz (R_zz + jitter I)^-1 R_zx <= K.
    Eigenfunctions vanish far outside the bulk of the inputs; a point there takes the rows around it back.
    """

    minorises: ClassVar[bool] = True

    def __init__(self, base: MercerMap, points: Tensor) -> None:
        super().__init__(base.kernel_family(base.log_length_scale.detach().exp()), points.shape[1])
        self.base = base
        self.points = points
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


@torch.no_grad()
def residual_points(base: FeatureMap, candidates: Tensor, count: int, least: float) -> Tensor:
    """At most ``count`` candidates (n, d) by pivoted Cholesky of the residual kernel, while it exceeds ``least``.

    Each is the one that the features and the points before it explain least.
    """
    Psi = base(candidates)
    R = base.kernel_family(base.log_length_scale.detach().exp())(candidates, candidates) - Psi @ Psi.mT
    chosen: list[int] = []
    for _ in range(min(count, candidates.shape[0])):
        pivot = int(R.diagonal().argmax())
        size = float(R[pivot, pivot])
        if size <= max(least, 1e-6):
            break
        R = R - torch.outer(R[pivot], R[pivot]) / size
        chosen.append(pivot)
    return candidates[chosen]
