"""Conjugate gradients on the exact system: near rows as preconditioner, residuals that hold, and how they end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.gp import vecchia
from certgp.gp.conjugate_gradients import AT_ROUNDING, OUT_OF_PRODUCTS, SOLVED, KernelSystem, LengthBound, solve
from certgp.gp.kernel_products import KernelMatrix
from certgp.gp.vecchia import VecchiaPreconditioner
from certgp.kernels import Gaussian, Kernel, Linear, Matern32, RationalQuadratic


def rows(n: int, d: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def dense(kernel: Kernel, X: torch.Tensor, noise: float) -> torch.Tensor:
    return kernel(X, X) + noise * torch.eye(len(X), dtype=torch.float64)


def system(kernel: Kernel, X: torch.Tensor, noise: float) -> KernelSystem:
    return KernelSystem(KernelMatrix(kernel, X), noise, torch.sin(3.0 * X.sum(1)))


@pytest.mark.parametrize("kernel", [Matern32(0.7, 2.0), RationalQuadratic(0.7, 2.0), Matern32(0.7, 2.0) + Linear(0.3)])
def test_with_all_rows_as_neighbours_the_inverse_is_exact(kernel):
    X, v = rows(60), rows(60, 1, 1)[:, 0]
    near = VecchiaPreconditioner(kernel, X, 0.1, neighbours=59)
    S = dense(kernel, X, 0.1)
    torch.testing.assert_close(near(v), torch.linalg.solve(S, v), rtol=1e-9, atol=1e-9)
    assert near.log_determinant == pytest.approx(float(torch.linalg.slogdet(S)[1]), abs=1e-8)


@pytest.mark.parametrize("kernel", [Matern32(6.0, 9.0), RationalQuadratic(6.0, 9.0)])
def test_the_low_rank_part_is_inverted_with_the_sparse_one(kernel, monkeypatch):
    """M^-1 is symmetric, has the determinant that is stated, and is close to S^-1 where near rows alone are not."""
    monkeypatch.setattr(vecchia, "RANK", 30)
    X, noise = rows(150), 1e-3
    both = VecchiaPreconditioner(kernel, X, noise, neighbours=5)
    monkeypatch.setattr(vecchia, "RANK", 80)  # more than half the rows: no features
    alone = VecchiaPreconditioner(kernel, X, noise, neighbours=5)
    assert (both.rank, alone.rank) == (30, 0)
    S, eye, spread = dense(kernel, X, noise), torch.eye(150, dtype=torch.float64), []
    for near in (both, alone):
        inverse = torch.stack([near(each) for each in eye])
        torch.testing.assert_close(inverse, inverse.mT, rtol=1e-7, atol=1e-7 * float(inverse.abs().max()))
        assert near.log_determinant == pytest.approx(-float(torch.linalg.slogdet(inverse)[1]), abs=1e-5)
        eigenvalues = torch.linalg.eigvals(inverse @ S).real
        spread.append(float(eigenvalues.max() / eigenvalues.min()))
    assert spread[0] < 0.1 * spread[1]


@pytest.mark.parametrize("noise", [0.3, 1e-3, 1e-6])
def test_the_residual_and_the_quadratic_term_are_as_stated(noise):
    kernel, X = Gaussian(1.0), rows(300)
    exact = system(kernel, X, noise)
    found = solve(exact, VecchiaPreconditioner(kernel, X, noise, 30), LengthBound(noise), 1e-6 / noise)
    S = dense(kernel, X, noise)
    left = exact.y - S @ found.weights
    assert found.ended == SOLVED
    assert float(left.norm()) / noise**0.5 <= found.length <= 1e-6 / noise
    value, remainder = float(exact.y @ torch.linalg.solve(S, exact.y)), float(left @ torch.linalg.solve(S, left))
    assert found.quadratic + remainder == pytest.approx(value, rel=1e-9)


def test_float32_steps_do_not_limit_what_is_reached():
    """Goals far below the rounding of float32, and below that of float64, which is said."""
    kernel, X = Matern32(3.0), rows(400)
    exact = system(kernel, X, 1e-3)
    near = VecchiaPreconditioner(kernel, X, 1e-3, 10)
    fine = solve(exact, near, LengthBound(1e-3), 1e-6)
    assert fine.ended == SOLVED
    assert float((exact.y - dense(kernel, X, 1e-3) @ fine.weights).norm()) < 1e-6 * 1e-3**0.5
    assert solve(exact, near, LengthBound(1e-3), 1e-14).ended == AT_ROUNDING


def test_a_start_is_used_and_products_are_counted():
    kernel, X = Matern32(1.0), rows(200)
    exact, near = system(kernel, X, 0.1), VecchiaPreconditioner(Matern32(1.0), X, 0.1, 10)
    first = solve(exact, near, LengthBound(0.1), 1e-5)
    again = solve(exact, near, LengthBound(0.1), 1e-5, start=first.weights)
    assert (again.products, again.ended) == (1, SOLVED)
    few = solve(exact, near, LengthBound(0.1), 1e-5, max_products=3)
    assert few.ended == OUT_OF_PRODUCTS
    assert few.products <= 3 < first.products
