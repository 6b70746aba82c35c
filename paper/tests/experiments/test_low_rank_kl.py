"""KL at many ranks from small algebra agrees with the dense oracle, whichever way it is computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from certgp.guarantees import gaussian_kl
from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.low_rank_kl import (
    ExactLaw,
    FourierKL,
    eigendecomposition_gaps,
    eigendecomposition_kl,
    first_within,
    nested_gaps,
    smallest,
    trace_bounds,
    truncation_kl,
)

N = 60
X = setting.normal_inputs(N, 2, np.random.default_rng(3))
NOISE = 0.5


def kernel_matrix(name: str = "gaussian") -> torch.Tensor:
    with torch.no_grad():
        return setting.kernel(name)(X, X)


def oracle(K: torch.Tensor, Sigma: torch.Tensor) -> float:
    noise = NOISE * np.eye(len(K))
    return gaussian_kl(K.numpy() + noise, Sigma.numpy() + noise)


def test_nested_ranks_from_one_factor():
    with torch.no_grad():
        Phi = setting.mercer_map(2, 12)(X)
    K = kernel_matrix()
    expected = [oracle(K, Phi[:, :r] @ Phi[:, :r].mT) for r in range(1, 13)]
    np.testing.assert_allclose(ExactLaw(K, NOISE).kl_to_nested(Phi), expected, rtol=1e-8, atol=1e-11)


def test_a_dense_sigma_need_not_be_below_the_kernel():
    K = kernel_matrix("matern12")
    assert ExactLaw(K, NOISE).kl_to(2.0 * K) == pytest.approx(oracle(K, 2.0 * K), rel=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "matern12"])
def test_fourier_ranks_in_any_order_below_and_above_half_of_n(name):
    K, pool = kernel_matrix(name), setting.fourier_map(name, 2, N, seed=1)
    divergence = FourierKL(ExactLaw(K, NOISE), pool, X)
    for pairs in (1, 8, 5, 20, 60, 40, 50, 2, 30):
        with torch.no_grad():
            Phi = pool.leading(2 * pairs)(X)
        assert divergence(pairs) == pytest.approx(oracle(K, Phi @ Phi.mT), rel=1e-8)


def test_eigendecomposition_in_closed_form():
    K = kernel_matrix("matern12")
    values, vectors = torch.linalg.eigh(K)
    kl, gaps = eigendecomposition_kl(values.numpy(), NOISE), eigendecomposition_gaps(values.numpy())
    for rank in (0, 3, 20, N):
        top = vectors[:, N - rank :]
        Sigma = top @ (values[N - rank :, None] * top.mT)
        assert kl[rank] == pytest.approx(oracle(K, Sigma), rel=1e-8, abs=1e-12)
        assert gaps[rank] == pytest.approx(float((K - Sigma).diagonal().sum()), abs=1e-11)


def test_a_truncated_expansion_keeps_its_digits_far_below_rounding():
    # theory, section 8, case A
    points = torch.from_numpy(norm.ppf((np.arange(1, 201) - 0.5) / 200) / 16)[:, None]
    with torch.no_grad():
        Psi = setting.mercer_map(1, 60)(points)
    found = [truncation_kl(Psi, rank, 1.0) for rank in range(1, 9)]
    golden = [9.6255844276, 0.63764274047, 1.6321946597e-2, 1.6486370656e-4, 1.0583762810e-6, 1.2367010258e-8]
    np.testing.assert_allclose(found, [*golden, 2.5282719776e-10, 2.6211923193e-12], rtol=2e-9)
    np.testing.assert_allclose(nested_gaps(Psi)[:3], [23.867606067, 2.7975242419, 0.30414170621], rtol=1e-10)


def test_trace_bounds_are_above_the_divergence_and_the_sharper_one_is_sharper():
    with torch.no_grad():
        Psi = setting.mercer_map(2, 60)(X)
    paper, sharp = trace_bounds(nested_gaps(Psi), NOISE)
    truth = [truncation_kl(Psi, rank, NOISE) for rank in range(1, 40)]
    assert (truth <= sharp[:39]).all()
    assert (sharp <= paper).all()


def test_the_search_finds_the_threshold_or_says_that_there_is_none():
    for threshold in (1, 2, 3, 7, 64, 99, 100):
        assert smallest(lambda k, t=threshold: k >= t, cap=100) == threshold
    assert smallest(lambda k: k >= 101, cap=100) is None
    assert first_within([3.0, 1.0, 2.0], 2.0) == 1
    assert first_within([3.0], 2.0) is None


@pytest.mark.parametrize("seed", [0, 3])
def test_frequencies_are_not_the_numbers_that_made_the_points(seed):
    """The stream of [seed, 0] is that of the seed alone, which makes the points."""
    X = setting.normal_inputs(50, 1, np.random.default_rng(seed)).flatten() / setting.INPUT_SCALE
    pool = setting.fourier_map("gaussian", 1, 50, seed)
    frequencies = pool.frequencies.flatten()
    same = torch.isclose(frequencies[:, None].abs(), X[None, :].abs(), rtol=1e-6)
    assert not same.any()
    other = setting.fourier_map("gaussian", 1, 50, seed, draw=1).frequencies.flatten()
    assert not torch.isclose(frequencies, other).any()
