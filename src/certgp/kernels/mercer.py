"""Mercer expansion of the Gaussian kernel: geometric eigenvalues and weighted Hermite functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import has_torch_function_unary

from certgp.kernels.products import ProductPlan

# exp() of a number below this is no longer a normal float64 with room to recur on
_SAFE_LOG = -600.0


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

    def weighted_functions(self, X: Tensor, plan: ProductPlan) -> Tensor:
        """phi_k(x) = prod_j sqrt(lambda_{k_j}) e_{k_j}(x_j) of X (n, d) for the multi-indices of a plan: (r, n)."""
        eps, alpha = self._eps_alpha()
        if has_torch_function_unary(X):
            return _recorded_functions(X.mT, eps, alpha, plan)
        phi: Tensor = _WeightedHermite.apply(X.mT.contiguous(), eps, alpha, plan)  # type: ignore[no-untyped-call]
        return phi

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
    r"""prod_j phi_{k_j}(x_j) for the multi-indices of a plan, x (d, n) -> (r, n), with derivatives in closed form.

        t = alpha beta x,  phi_0 = sqrt((1 - q) beta) exp(-delta2 x^2)
        phi_{k+1} = sqrt(q) sqrt(2 / (k + 1)) t phi_k - q sqrt(k / (k + 1)) phi_{k-1}

    By Mercer's theorem sum_k phi_k^2 = 1, so the recurrence on *weighted* functions cannot overflow; only its start can
    underflow, and those points recur on mantissas with a log-scale of their own. Recurrence and products are compiled
    loops; the pull-back computes the functions anew, block by block, instead of keeping them.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: Tensor, alpha: Tensor, plan: ProductPlan) -> Tensor:
        from certgp.kernels import compiled
        from certgp.loops import run_over_rows

        c = _Coefficients.of(eps.detach().double(), alpha.detach().double())
        start = torch.exp(c.log_start[:, None].to(x.dtype) - c.delta2[:, None].to(x.dtype) * x.square())
        phi = x.new_empty((plan.size, x.shape[1]))
        run_over_rows(compiled.products, x.shape[1], *_loop_arguments(x, start, c, alpha, plan), phi.numpy())
        ctx.plan = plan
        ctx.save_for_backward(x, eps, alpha, start)
        return phi

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        from certgp.kernels import compiled
        from certgp.loops import run_over_rows

        x, eps, alpha, start = ctx.saved_tensors
        c = _Coefficients.of(eps, alpha)
        G, sums = grad_outputs[0].contiguous(), x.new_empty((3, *x.shape))
        arguments = _loop_arguments(x, start, c, alpha, ctx.plan)
        run_over_rows(compiled.pull_back, x.shape[1], *arguments, G.numpy(), sums.numpy())
        S, U, K = sums
        kC = K.sum(1)
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


def _recorded_functions(x: Tensor, eps: Tensor, alpha: Tensor, plan: ProductPlan) -> Tensor:
    """The same (r, n) of x (d, n) by operations of torch alone, for operands that record them (``certgp.export``).

    Where phi_0 = e^L underflows, mantissas recur from e^-600 and take the rest of e^L at the end; below L = -1200 no
    degree in use has come back to anything, and all functions are zero.
    """
    c = _Coefficients.of(eps.detach(), alpha.detach())
    slope = torch.sqrt(2.0 * c.q) * alpha.detach() * c.beta
    found = []
    for j, count in enumerate(plan.counts):
        log_start = c.log_start[j] - c.delta2[j] * x[j].square()
        first = torch.exp(log_start.clamp_min(_SAFE_LOG)) * (log_start > 2.0 * _SAFE_LOG).double()
        table = [first]
        for k in range(count - 1):
            following = slope[j] / math.sqrt(k + 1.0) * x[j] * table[k]
            table.append(following - c.q[j] * math.sqrt(k / (k + 1.0)) * table[k - 1] if k else following)
        rest = torch.exp((log_start - _SAFE_LOG).clamp(2.0 * _SAFE_LOG, 0.0))
        functions = torch.stack([row * rest for row in table])
        found.append(functions[plan.indices[:, j].tolist()])
    return math.prod(found[1:], start=found[0])


def _loop_arguments(x: Tensor, start: Tensor, c: _Coefficients, alpha: Tensor, plan: ProductPlan) -> tuple[Any, ...]:
    """What both compiled loops take first."""
    slope = torch.sqrt(2.0 * c.q) * alpha * c.beta
    coefficients = torch.stack([c.log_start, c.delta2, slope, c.q], 1).detach().double().numpy()
    safe = math.exp(_SAFE_LOG if x.dtype == torch.float64 else _SAFE_LOG / 10.0)
    return x.detach().numpy(), start.numpy(), coefficients, safe, plan.offsets, plan.first, plan.second
