"""Functions of the distance between rows in units of the length-scales: what stationary families share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import has_torch_function

from certgp.linalg import UNIT_ROUNDOFF


class Radial(NamedTuple):
    """A function u(r) of the distance, and its slope over the distance."""

    value: Callable[[Tensor], Tensor]  # u(r)
    slope: Callable[[Tensor], Tensor]  # u'(r) / r, and 0 at r = 0 where it has no limit
    has_kink: bool = False  # is u'(r) / r without bound as r goes to 0?


def scaled_distance(X: Tensor, Z: Tensor, length_scale: Tensor) -> Tensor:
    """r_ij = |(x_i - z_j) / l| (n, m) from differences: the matrix-product form would lose half the digits near zero,
    where some correlations have a kink.
    """
    return radial_function(X, Z, length_scale, _IDENTITY)


def radial_function(X: Tensor, Z: Tensor, length_scale: Tensor, radial: Radial) -> Tensor:
    """u(r) (n, m) of ``scaled_distance(X, Z)``, elementwise."""
    scale, centre = length_scale.to(X.dtype), Z.detach().mean(0)  # differences of large numbers lose digits
    left, right = (X - centre) / scale, (Z - centre) / scale
    if has_torch_function((left, right)):  # operands that record operations of torch (``certgp.export``)
        return radial.value(_distance(left, right))
    found: Tensor = _RadialFunction.apply(left, right, radial)  # type: ignore[no-untyped-call]
    return found


def invert(r: Tensor) -> Tensor:
    """1 / r, and 0 at r = 0."""
    return torch.where(r > 0.0, r, math.inf).reciprocal_()


def _distance(U: Tensor, V: Tensor) -> Tensor:
    return torch.cdist(U, V, compute_mode="donot_use_mm_for_euclid_dist")


_PART = 2**17  # numbers (1 MiB in float64)
_IDENTITY = Radial(lambda r: r, invert, has_kink=True)


class _RadialFunction(torch.autograd.Function):
    r"""u(|p_i - q_j|) (n, m). Its pull-back is matrix products: with W = G * u'(r) / r,

        dL/dp_i = sum_j W_ij (p_i - q_j) = p_i [W 1]_i - [W Q]_i,    dL/dq_j = q_j [W'1]_j - [W'P]_j.

    Both go through the rows in parts, whose temporaries stay in the processor's cache. These sums cancel to about
    u |p| |W_ij|, u the unit roundoff. That is little unless W grows without bound near a kink: there, pairs at a
    distance below u^(1/4) are pulled back by their differences (docs/decisions/0059).
    """

    @staticmethod
    def forward(ctx: Any, P: Tensor, Q: Tensor, radial: Radial) -> Tensor:
        found = P.new_empty((len(P), len(Q)))
        kept = torch.empty_like(found) if any(ctx.needs_input_grad) else None
        for part in row_parts(len(P), len(Q)):
            r = _distance(P[part], Q)
            found[part] = radial.value(r)
            if kept is not None:
                kept[part] = r
        if kept is not None:
            ctx.save_for_backward(P, Q, kept)
            ctx.radial = radial
        return found

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        (P, Q, r), (G,) = ctx.saved_tensors, grad_outputs
        by_P, by_Q = torch.empty_like(P), torch.zeros_like(Q)
        p_one, q_one = with_ones(P), with_ones(Q)
        moments = torch.zeros_like(q_one)
        for part in row_parts(len(P), len(Q)):
            W, own = ctx.radial.slope(r[part]).mul_(G[part]), P[part]
            near = _near_pairs(r[part]) if ctx.radial.has_kink else None
            if near is not None:
                i, j = near
                pulled = W[near][:, None] * (own[i] - Q[j])
                W[near] = 0.0
                by_Q.index_add_(0, j, pulled, alpha=-1.0)
            if ctx.needs_input_grad[0]:
                by_P[part] = pull_back(own, W @ q_one)
                if near is not None:
                    by_P[part].index_add_(0, i, pulled)
            if ctx.needs_input_grad[1]:
                moments.addmm_(W.mT, p_one[part])
        needs_P, needs_Q, _ = ctx.needs_input_grad
        return by_P if needs_P else None, by_Q.add_(pull_back(Q, moments)) if needs_Q else None, None


def _near_pairs(r: Tensor) -> tuple[Tensor, Tensor] | None:
    """Rows and columns of distances below u^(1/4) but zero; None where there are none."""
    near = (r < torch.finfo(r.dtype).eps ** 0.25) & (r > 0.0)
    if not bool(near.any()):
        return None
    i, j = near.nonzero(as_tuple=True)
    return i, j


def refuse_second_derivatives() -> None:
    """For pull-backs of what was saved on the way: torch would take it for constant."""
    if torch.is_grad_enabled():  # in a pull-back: with create_graph=True
        raise NotImplementedError(
            "kernels of certgp have first derivatives only; differentiate without create_graph=True"
        )


def row_parts(n: int, m: int) -> Iterator[slice]:
    """Parts of n rows with m numbers each, as many as stay in the processor's cache."""
    size = max(1, _PART // max(m, 1))
    return (slice(start, start + size) for start in range(0, n, size))


def with_ones(X: Tensor) -> Tensor:
    """[X, 1]."""
    return torch.cat([X, X.new_ones((len(X), 1))], 1)


def pull_back(own: Tensor, moments: Tensor) -> Tensor:
    """diag(W 1) own - W others, from moments = W [others, 1]."""
    return moments[:, -1:] * own - moments[:, :-1]


def spread(Z: Tensor, length_scale: Tensor) -> float:
    """The largest |(z - centre) / l|."""
    offset = (Z - Z.mean(0)).detach() / length_scale.detach()
    return math.sqrt(float(offset.square().sum(1).max())) if len(Z) else 0.0


def distance_rounding(Z: Tensor, length_scale: Tensor) -> float:
    """A bound on the rounding of k(r), r = ``scaled_distance(X, Z)``, for |k'| <= 1 and r |k'| <= 1, at any X.

    A distance r errs by at most u (4 R + (d / 2 + 5) r) with R = ``spread(Z)``: coordinates are rounded at their own
    size before they are subtracted.
    """
    return (spread(Z, length_scale) + 1.0) * (Z.shape[1] + 16) * UNIT_ROUNDOFF
