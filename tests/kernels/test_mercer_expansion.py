"""The Mercer expansion of the Gaussian kernel: orthonormal, complete, accurate where double precision is hardest."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

from certgp.kernels import Gaussian, MercerExpansion
from certgp.kernels.products import ProductPlan
from helpers import tensor

EPSILONS = [0.01, 0.1, 0.5, 2.0, 10.0]


def expansion_of(eps: float, input_scale: float = 1.0) -> MercerExpansion:
    """eps^2 = 1 / (2 l^2)."""
    return Gaussian(np.array([math.sqrt(0.5) / eps])).mercer(tensor([input_scale]))


def degrees(count: int) -> ProductPlan:
    """Degrees 0 to count - 1 in one dimension."""
    return ProductPlan.of(np.arange(count)[:, None])


def functions_of(eps: float, x: object, count: int, input_scale: float = 1.0) -> np.ndarray:
    """phi_k(x), k < count: (count, n)."""
    return expansion_of(eps, input_scale).weighted_functions(tensor(x)[:, None], degrees(count)).numpy()


# -------------------- closed forms and measures


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("input_scale", [0.1, 1.0, 3.0])
def test_eigenvalues_are_those_of_the_paper_and_sum_to_one(eps, input_scale):
    expansion = expansion_of(eps, input_scale)
    alpha2 = 0.5 / input_scale**2
    A = 0.5 * alpha2 + eps**2 + 0.5 * math.sqrt(alpha2**2 + 4.0 * alpha2 * eps**2)  # alpha^2 + delta^2 + eps^2
    k = np.arange(4000)
    found = expansion.eigenvalues(torch.from_numpy(k)[:, None]).numpy()
    np.testing.assert_allclose(found[:40], math.sqrt(alpha2 / A) * (eps**2 / A) ** k[:40], rtol=1e-12)
    np.testing.assert_allclose(math.fsum(found), 1.0, rtol=1e-12)


def test_eigenvalues_multiply_over_dimensions():
    scales, inputs = [0.4, 1.3, 2.0], tensor([1.0, 0.7, 2.0])
    index = torch.tensor([[0, 0, 0], [2, 0, 1], [3, 5, 2]])
    joint = Gaussian(scales).mercer(inputs).eigenvalues(index)
    single = [Gaussian(scales[j : j + 1]).mercer(inputs[j : j + 1]).eigenvalues(index[:, j : j + 1]) for j in range(3)]
    torch.testing.assert_close(joint, torch.stack(single).prod(0), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("input_scale", [0.2, 1.0, 2.5])
def test_eigenfunctions_are_orthonormal_under_the_input_measure(eps, input_scale):
    count, alpha = 60, math.sqrt(0.5) / input_scale
    t, weights = np.polynomial.hermite.hermgauss(120)
    alpha_beta = alpha * (1.0 + 4.0 * (eps / alpha) ** 2) ** 0.25
    x = t / alpha_beta
    eigenvalues = expansion_of(eps, input_scale).eigenvalues(torch.arange(count)[:, None]).numpy()
    e = functions_of(eps, x, count, input_scale) / np.sqrt(eigenvalues)[:, None]
    # rho(x) dx = alpha / sqrt(pi) exp(-alpha^2 x^2) dx against the rule's exp(-t^2) dt, t = alpha beta x
    measure = weights * np.exp(t**2 - (alpha * x) ** 2) * (alpha / alpha_beta) / math.sqrt(math.pi)
    assert np.abs((e * measure) @ e.T - np.eye(count)).max() < 1e-12


# -------------------- reconstruction

PAIRS = np.array([(0.0, 0.0), (0.3, 0.31), (-1.2, 0.7), (2.5, 2.4), (-3.0, -2.2), (4.0, 3.9), (1.0, -1.0), (3.7, -3.7)])


@pytest.mark.parametrize("eps", [0.5, 2.0, 10.0])
def test_the_sum_of_products_is_the_kernel(eps):
    left, right = functions_of(eps, PAIRS[:, 0], 800), functions_of(eps, PAIRS[:, 1], 800)
    kernel = np.exp(-(eps**2) * (PAIRS[:, 0] - PAIRS[:, 1]) ** 2)
    assert np.abs((left * right).sum(0) - kernel).max() < 1e-12


def test_the_sum_of_squares_is_one_where_the_naive_start_underflows():
    assert math.exp(-2.0 * 10.0**2 / (math.sqrt(801.0) + 1.0) * 20.0**2) == 0.0  # phi_0 itself is no double
    squares = np.square(functions_of(10.0, [20.0, -20.0], 4000)).sum(0)
    assert np.abs(squares - 1.0).max() < 1e-10


# -------------------- against many-digit arithmetic


def high_precision_functions(eps: float, x: float, count: int) -> list[mpmath.mpf]:
    """phi_k = sqrt(lambda_k) e_k by the paper's formulas: H_k by its own (unweighted) recurrence, 120 digits."""
    with mpmath.workdps(120):
        length_scale = mpmath.mpf(math.sqrt(0.5) / eps)  # the very number that the expansion receives
        eps2, alpha2, x = 1 / (2 * length_scale**2), mpmath.mpf("0.5"), mpmath.mpf(x)
        beta2 = mpmath.sqrt(1 + 4 * eps2 / alpha2)
        delta2 = alpha2 * (beta2 - 1) / 2
        A = alpha2 + delta2 + eps2
        t = mpmath.sqrt(alpha2 * beta2) * x
        base = mpmath.sqrt(mpmath.sqrt(alpha2 / A)) * mpmath.sqrt(mpmath.sqrt(beta2)) * mpmath.exp(-delta2 * x**2)
        factor, values, before, now = base, [], mpmath.mpf(0), mpmath.mpf(1)
        for k in range(count):
            values.append(factor * now)
            before, now = now, 2 * t * now - 2 * k * before
            factor *= mpmath.sqrt(eps2 / A / (2 * (k + 1)))
        return values


def test_the_oracle_agrees_with_hermite_polynomials_of_mpmath():
    values = high_precision_functions(2.0, 5.5, 301)
    with mpmath.workdps(120):
        beta2 = mpmath.sqrt(1 + 4 / (mpmath.mpf(math.sqrt(0.5) / 2.0) ** 2))
        t = mpmath.sqrt(beta2 / 2) * mpmath.mpf("5.5")
        for j, k in [(0, 1), (7, 40), (100, 300)]:
            ratio = (
                mpmath.hermite(k, t)
                / mpmath.hermite(j, t)
                / mpmath.sqrt(2 ** (k - j) * mpmath.factorial(k) / mpmath.factorial(j))
            )
            ratio *= ((beta2 - 1) / (beta2 + 1)) ** (mpmath.mpf(k - j) / 2)
            assert abs(values[k] / values[j] / ratio - 1) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("eps", EPSILONS)
def test_agrees_with_many_digits_up_to_degree_500(eps):
    x = np.array([0.0, 1e-3, -0.11, 0.5, -1.0, 2.3, 3.71, -5.0, 7.77, 9.3, -9.5, 12.0, 16.4, -20.0, 20.0])
    found = functions_of(eps, x, 501)
    for column, point in enumerate(x):
        exact = high_precision_functions(eps, float(point), 501)
        errors = np.array([float(abs(mpmath.mpf(float(f)) - e)) for f, e in zip(found[:, column], exact, strict=True)])
        sizes = np.array([float(abs(e)) for e in exact])
        representable = sizes > 1e-250
        assert errors.max() < 1e-12
        assert (errors[representable] < 1e-10 * sizes[representable]).all()
        assert (found[representable, column] != 0.0).all()  # no silent zero


def test_finite_everywhere():
    x = np.linspace(-20.0, 20.0, 401)
    for eps in np.geomspace(0.01, 10.0, 31):
        phi = functions_of(eps, x, 501)
        assert np.isfinite(phi).all()
        assert (
            np.square(phi).sum(0).max() <= 1.0 + 1e-12
        )  # |phi(x)|^2 <= k(x, x): what is kept never exceeds the kernel


def test_both_branches_meet_where_the_start_underflows():
    """Points either side of the switch to scaled mantissas: their features still reproduce the kernel between them."""
    delta2 = 2.0 * 10.0**2 / (math.sqrt(801.0) + 1.0)
    switch = math.sqrt(600.0 / delta2)
    x = switch + np.array([-0.02, -1e-6, 1e-6, 0.02])
    phi = functions_of(10.0, x, 2500)
    assert np.abs(phi.T @ phi - np.exp(-100.0 * np.subtract.outer(x, x) ** 2)).max() < 1e-12


def test_float32_follows_float64():
    x = np.linspace(-20.0, 20.0, 101)
    single = expansion_of(2.0).weighted_functions(tensor(x)[:, None].float(), degrees(300))
    assert single.dtype == torch.float32
    assert np.abs(single.numpy() - functions_of(2.0, x.astype(np.float32), 300)).max() < 1e-4


# -------------------- gradients


@pytest.mark.parametrize(("eps", "x"), [(0.5, [-1.3, 0.0, 0.7, 2.9]), (2.0, [-2.0, 0.4]), (10.0, [0.3, -0.8])])
def test_gradients_in_inputs_length_scale_and_input_scale(eps, x):
    arguments = tensor(x), tensor([math.sqrt(0.5) / eps]), tensor([1.3])

    def function(x, length_scale, input_scale):
        return MercerExpansion(length_scale, input_scale).weighted_functions(x[:, None], degrees(25))

    assert torch.autograd.gradcheck(function, [a.requires_grad_() for a in arguments], rtol=1e-6, atol=1e-8)


def test_gradients_of_points_with_scaled_mantissas():
    """At eps = 10, x = 9.5 the start underflows; sum_k phi_k(x) phi_k(x') is the kernel, so is its derivative."""
    a = tensor([9.5]).requires_grad_()
    b = tensor([9.56, 9.41])
    expansion = expansion_of(10.0)
    left, right = (
        expansion.weighted_functions(a[:, None], degrees(2500)),
        expansion.weighted_functions(b[:, None], degrees(2500)),
    )
    for j in range(2):
        (found,) = torch.autograd.grad(left[:, 0] @ right[:, j], a, retain_graph=True)
        difference = float(a.detach() - b[j])
        exact = -2.0 * 100.0 * difference * math.exp(-100.0 * difference**2)
        assert abs(float(found) - exact) < 1e-8 * abs(exact)
