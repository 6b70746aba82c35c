"""Local conditionals against dense algebra, and their gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.errors import NotPositiveDefiniteError
from certgp.gp.conditionals import (
    condition,
    coordinates,
    correlation_blocks,
    gather,
    general_loss,
    radial_loss,
)
from certgp.kernels import Gaussian, Kernel, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic
from helpers import random_inputs

LENGTHS = [0.7, 1.1, 2.0]
RADIAL = [family(LENGTHS, 1.7) for family in (Gaussian, Matern12, Matern32, Matern52)]
OTHERS: list[Kernel] = [
    RationalQuadratic(0.9, 0.8, signal_variance=1.3),
    Matern32(0.8) + Linear(columns=[0]),
    Gaussian(1.2, columns=[0, 2]) * Periodic(1.0, 2.0, columns=[1]),
]
N, NOISE = 40, 0.07
X, y = random_inputs(0, N, 3), torch.from_numpy(np.random.default_rng(1).standard_normal(N))


def some_neighbours(count: int = 9, rows: int = N) -> np.ndarray:
    """Any other rows will do, some of them with fewer."""
    rng = np.random.default_rng(2)
    sets = np.stack([rng.permutation(np.delete(np.arange(N), i))[:count] for i in range(rows)])
    sets[3, 4:], sets[5] = -1, -1
    return sets


def dense(kernel: Kernel, i: int, near: np.ndarray) -> tuple[float, float, np.ndarray]:
    rows = torch.from_numpy(near[near >= 0])
    K = kernel(X[rows], X[rows]) + NOISE * torch.eye(len(rows), dtype=torch.float64)
    k = kernel(X[rows], X[i : i + 1])[:, 0]
    v = torch.linalg.solve(K, k)
    return float(v @ y[rows]), float(kernel.diagonal(X[i : i + 1])[0] - v @ k), v.numpy()


@pytest.mark.parametrize("kernel", [*RADIAL, *OTHERS], ids=lambda k: k.name)
@pytest.mark.parametrize("with_weights", [False, True])
def test_moments_and_weights_are_those_of_dense_algebra(kernel, with_weights):
    sets = some_neighbours()
    found = condition(kernel, X, X, y, sets, NOISE, with_weights)
    for i in range(N):
        mean, variance, weights = dense(kernel, i, sets[i])
        assert found.mean[i] == pytest.approx(mean, abs=1e-10)
        assert found.variance[i] == pytest.approx(variance, abs=1e-10)
        if with_weights:
            np.testing.assert_allclose(found.weights[i][sets[i] >= 0], weights, atol=1e-9)
            assert not found.weights[i][sets[i] < 0].any()


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda k: k.name)
def test_compiled_profiles_are_the_kernels_own(kernel):
    """A product with a single factor is evaluated by the kernel's own code."""
    sets = some_neighbours()
    compiled = condition(kernel, X, X, y, sets, NOISE)
    general = condition(kernel * Gaussian(1e6, signal_variance=1.0), X, X, y, sets, NOISE)
    np.testing.assert_allclose(compiled.mean, general.mean, atol=1e-9)
    np.testing.assert_allclose(compiled.variance, general.variance, atol=1e-9)


def losses(kernel: Kernel, log_lengths: torch.Tensor, log_signal: float, log_ratio: float):
    """The loss through compiled loops and through the kernel's own code, each with its gradient in log lengths."""
    sets, rows = some_neighbours(rows=20), np.arange(20)
    scaled = kernel.replace(length_scale=log_lengths.exp(), signal_variance=1.0)
    Z = coordinates(scaled, X)
    signal, ratio = np.exp(log_signal), np.exp(log_ratio)
    loss, by_Z = radial_loss(kernel, Z.detach().contiguous(), y, rows, sets, signal, ratio)
    (by_radial,) = torch.autograd.grad(Z, log_lengths, by_Z, retain_graph=True)
    block = gather(X[:20], X, y, sets, y[:20])
    K = correlation_blocks(scaled, block.points)
    other, by_K = general_loss(K, block, signal, ratio, kernel)
    (by_general,) = torch.autograd.grad(K, log_lengths, by_K)
    return loss, by_radial, other, by_general


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda k: k.name)
def test_gradients_are_those_of_differences(kernel):
    start, step = torch.tensor(LENGTHS, dtype=torch.float64).log(), 1e-5
    at = start.clone().requires_grad_(True)
    loss, by_radial, other, by_general = losses(kernel, at, 0.3, -2.0)
    assert other.value == pytest.approx(loss.value, rel=1e-12)
    np.testing.assert_allclose(by_radial, by_general, rtol=1e-8, atol=1e-10)

    def value(lengths: torch.Tensor, signal: float = 0.3, ratio: float = -2.0) -> float:
        return losses(kernel, lengths.requires_grad_(True), signal, ratio)[0].value

    for j in range(3):
        move = step * torch.eye(3, dtype=torch.float64)[j]
        slope = (value(start + move) - value(start - move)) / (2 * step)
        assert float(by_radial[j]) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    by_signal = (value(start.clone(), signal=0.3 + step) - value(start.clone(), signal=0.3 - step)) / (2 * step)
    by_ratio = (value(start.clone(), ratio=-2.0 + step) - value(start.clone(), ratio=-2.0 - step)) / (2 * step)
    for found in (loss, other):
        assert found.by_log_signal == pytest.approx(by_signal, rel=1e-6)
        assert found.by_log_ratio == pytest.approx(by_ratio, rel=1e-6)


def test_a_failed_factorisation_is_an_error():
    same = torch.zeros((5, 1), dtype=torch.float64)
    sets = np.array([[1, 2, 3, 4]])
    with pytest.raises(NotPositiveDefiniteError, match=r"neighbours of 1 row.*noise_variance"):
        condition(Gaussian(1.0), same[:1], same, torch.zeros(5, dtype=torch.float64), sets, 0.0)


def test_results_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    rows, targets = torch.from_numpy(rng.standard_normal((300, 3))), torch.from_numpy(rng.standard_normal(300))
    sets = rng.integers(0, 300, (300, 12))
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(condition(RADIAL[2], rows, rows, targets, sets, NOISE))
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(found[0].mean, found[1].mean)
    assert np.array_equal(found[0].variance, found[1].variance)
