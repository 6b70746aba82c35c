"""Mercer expansion of the Gaussian kernel: geometric eigenvalues and weighted Hermite functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# exp() of a number below this is no longer a normal float64 with room to recur on
_SAFE_LOG = -600.0
_RESCALE = 1e100


@dataclass(frozen=True, eq=False)
class MercerExpansion:
    r"""k(x, x') / sf2 = sum_k prod_j phi_{k_j}(x_j) phi_{k_j}(x'_j) for x_j ~ N(0, s_j^2).  [paper, sec. 4.2; theory
    sec. 1]

    Per dimension, with eps^2 = 1 / (2 l^2), alpha^2 = 1 / (2 s^2) and w = sqrt(1 + 4 eps^2 / alpha^2):

        q = (w - 1) / (w + 1)      lambda_k = (1 - q) q^k      delta2 = alpha^2 (w - 1) / 2      beta = sqrt(w)

    The eigenvalues are the probabilities of a geometric law, so they sum to one exactly.
    """

    length_scale: Tensor  # (d,)
    input_scale: Tensor  # (d,)

    @property
    def ratio(self) -> Tensor:
        """q_j (d,), the ratio of successive eigenvalues of dimension j."""
        return _Coefficients.of(*self._eps_alpha()).q

    def eigenvalues(self, index: Tensor) -> Tensor:
        """lambda_k = prod_j (1 - q_j) q_j^{k_j} for multi-indices (r, d) of degrees: (r,)."""
        q = self.ratio.expand(index.shape[1])
        return torch.exp(torch.log1p(-q).sum() + (index * q.log()).sum(1))

    def weighted_functions(self, X: Tensor, counts: list[int]) -> list[Tensor]:
        """phi_k(x_j) = sqrt(lambda_k) e_k(x_j), degrees 0 .. counts[j] - 1, per dimension j a tensor (counts[j], n)."""
        eps, alpha = self._eps_alpha()
        tables: tuple[Tensor, ...] = _WeightedHermite.apply(X.mT.contiguous(), eps, alpha, counts)  # type: ignore[no-untyped-call]
        return list(tables)

    def _eps_alpha(self) -> tuple[Tensor, Tensor]:
        d = max(self.length_scale.numel(), self.input_scale.numel())
        return (
            math.sqrt(0.5) / self.length_scale.expand(d),
            math.sqrt(0.5) / self.input_scale.expand(d),
        )


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """Closed forms without cancellation as eps / alpha -> 0."""

    q: Tensor
    beta: Tensor
    delta2: Tensor
    log_start: Tensor  # log of phi_0 at x = 0: 1/2 log((1 - q) beta)

    @staticmethod
    def of(eps: Tensor, alpha: Tensor) -> _Coefficients:
        rho = (eps / alpha).square()
        w = torch.sqrt(1.0 + 4.0 * rho)
        q = 4.0 * rho / (w + 1.0).square()
        one_minus_q = 2.0 / (w + 1.0)
        beta = torch.sqrt(w)
        return _Coefficients(q, beta, 2.0 * eps.square() / (w + 1.0), 0.5 * torch.log(one_minus_q * beta))


class _WeightedHermite(torch.autograd.Function):
    r"""phi_k(x_j), k = 0 .. counts[j] - 1, of every dimension j: x (d, n) -> d tables (counts[j], n), with their
    derivatives in closed form.

        t = alpha beta x,  phi_0 = sqrt((1 - q) beta) exp(-delta2 x^2)
        phi_{k+1} = sqrt(q) sqrt(2 / (k + 1)) t phi_k - q sqrt(k / (k + 1)) phi_{k-1}

    By Mercer's theorem sum_k phi_k^2 = 1, so the recurrence on *weighted* functions cannot overflow; only its start can
    underflow, and those points recur on mantissas with a log-scale of their own.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: Tensor, alpha: Tensor, counts: list[int]) -> tuple[Tensor, ...]:
        c = _Coefficients.of(eps.detach().double(), alpha.detach().double())
        log_start = c.log_start[:, None].to(x.dtype) - c.delta2[:, None].to(x.dtype) * x.square()
        slope = (torch.sqrt(2.0 * c.q) * alpha * c.beta)[:, None].to(x.dtype) * x
        start, far = torch.exp(log_start), log_start < (_SAFE_LOG if x.dtype == torch.float64 else _SAFE_LOG / 10.0)
        tables = [_recur(*args) for args in zip(start, slope, c.q.tolist(), counts, strict=True)]
        if bool(far.any()):
            for phi, at, steep, q, mask in zip(tables, log_start, slope, c.q.tolist(), far, strict=True):
                phi[:, mask] = _recur_scaled(at[mask].double(), steep[mask].double(), q, len(phi)).to(x.dtype)
        ctx.save_for_backward(x, eps, alpha, *tables)
        return tuple(tables)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        x, eps, alpha, *tables = ctx.saved_tensors
        c = _Coefficients.of(eps, alpha)
        S, U, kC = torch.empty_like(x), torch.zeros_like(x), torch.empty_like(eps)
        for j, (G, phi) in enumerate(zip(grad_outputs, tables, strict=True)):
            k = torch.arange(len(phi), dtype=phi.dtype)
            weighted = G * phi
            torch.sum(weighted, 0, out=S[j])
            kC[j] = weighted.sum(1) @ k
            if len(phi) > 1:  # d phi_k / dt brings sqrt(k) phi_{k-1}
                torch.mul(G[1:], phi[:-1], out=weighted[1:])
                torch.mv(weighted[1:].mT, k[1:].sqrt(), out=U[j])
        root = torch.sqrt(2.0 * c.q)
        xS = x * S
        grad_x = (alpha * c.beta * root)[:, None].to(x.dtype) * U - (2.0 * c.delta2)[:, None].to(x.dtype) * xS

        total, xU = S.sum(1), (x * U).sum(1)
        x2S = (x * xS).sum(1)
        dq_dbeta = 4.0 * c.beta / (c.beta.square() + 1.0).square()
        one_minus_q = 2.0 / (c.beta.square() + 1.0)
        d_eigenvalue = 0.5 * (kC / c.q - total / one_minus_q) * dq_dbeta

        def chain(d_beta: Tensor, d_delta2: Tensor, d_slope: Tensor) -> Tensor:
            total_derivative: Tensor = (
                d_eigenvalue * d_beta + total * d_beta / (2.0 * c.beta) - x2S * d_delta2 + root * d_slope * xU
            )
            return total_derivative

        beta_eps = 2.0 * eps / (alpha.square() * c.beta**3)
        grad_eps = chain(beta_eps, alpha.square() * c.beta * beta_eps, alpha * beta_eps)
        beta_alpha = -2.0 * eps.square() / (alpha**3 * c.beta**3)
        grad_alpha = chain(
            beta_alpha,
            alpha * (c.beta.square() - 1.0) + alpha.square() * c.beta * beta_alpha,
            c.beta + alpha * beta_alpha,
        )
        return grad_x, grad_eps.to(eps.dtype), grad_alpha.to(alpha.dtype), None


def _recur(start: Tensor, slope: Tensor, q: float, count: int) -> Tensor:
    """The recurrence in plain floating point, written into one (count, n) array."""
    phi = start.new_empty((count, start.shape[0]))
    phi[0] = start
    if count > 1:
        torch.mul(slope, phi[0], out=phi[1])
    for k in range(1, count - 1):
        torch.mul(slope, phi[k], out=phi[k + 1])
        phi[k + 1].mul_(math.sqrt(1.0 / (k + 1))).add_(phi[k - 1], alpha=-q * math.sqrt(k / (k + 1)))
    return phi


def _recur_scaled(log_start: Tensor, slope: Tensor, q: float, count: int) -> Tensor:
    """The same recurrence on mantissas m_k with one log-scale L per point: phi_k = m_k exp(L)."""
    phi = slope.new_empty((count, slope.shape[0]))
    log_scale = log_start.clone()
    previous, current = torch.zeros_like(slope), torch.ones_like(slope)
    for k in range(count):
        phi[k] = current.sign() * torch.exp(current.abs().log() + log_scale)
        following = slope * current * math.sqrt(1.0 / (k + 1)) - (q * math.sqrt(k / (k + 1))) * previous
        previous, current = current, following
        size = torch.maximum(previous.abs(), current.abs())
        factor = torch.ones_like(size).masked_fill_(size > _RESCALE, 1.0 / _RESCALE)
        factor.masked_fill_(size < 1.0 / _RESCALE, _RESCALE)
        previous, current = previous * factor, current * factor
        log_scale = log_scale - factor.log()
    return phi
