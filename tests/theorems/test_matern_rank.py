"""Ranks before fitting for Matern kernels: eigenvalues bounded from below, and the promise against dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from certgp.errors import InvalidInputError
from certgp.features import MercerFeatures
from certgp.guarantees import matern12_eigenvalues, mercer_rank, quadrature_eigenvalues, ritz_eigenvalues
from certgp.kernels import Matern12, Matern32, Matern52, kernel_from_name

ARGUMENTS = {"input_scale": 1.0, "n": 2000, "noise_variance": 0.1, "epsilon": 0.01}


def smallest_kl(kernel: str, length_scale: float, rank: int, seed: int = 0) -> float:
    """KL of the best approximation of this rank on fresh rows: 1/2 sum over i > r of x_i - ln(1 + x_i)."""
    half_width, n = math.sqrt(3.0), ARGUMENTS["n"]
    X = torch.from_numpy(np.random.default_rng(seed).uniform(-half_width, half_width, (n, 1)))
    values = np.linalg.eigvalsh(kernel_from_name(kernel)(length_scale)(X, X).numpy())[::-1].clip(0.0)
    x = values[rank:] / ARGUMENTS["noise_variance"]
    return 0.5 * float((x - np.log1p(x)).sum())


@pytest.mark.parametrize("length_scale", [0.05, 0.5, 5.0])
def test_ritz_values_are_below_the_eigenvalues_and_close_to_them(length_scale):
    exact = matern12_eigenvalues(length_scale, 1.7, 200)
    ritz = ritz_eigenvalues(Matern12(length_scale), 1.7, cells=100)
    assert (ritz[:200] <= exact + 1e-15).all()
    np.testing.assert_allclose(ritz[:40], exact[:40], rtol=1e-4)


@pytest.mark.parametrize("kernel", [Matern32, Matern52])
def test_more_cells_only_raise_ritz_values(kernel):
    coarse, fine = (ritz_eigenvalues(kernel(0.02), 1.0, cells=cells) for cells in (20, 60))
    assert (coarse <= fine[: len(coarse)] + 1e-14).all()
    assert fine.sum() < 1.0


@pytest.mark.parametrize(("kernel", "length_scale"), [("matern32", 0.3), ("matern52", 0.02)])
def test_the_rank_keeps_its_promise(kernel, length_scale):
    rank = mercer_rank(kernel=kernel, length_scale=length_scale, **ARGUMENTS)
    assert smallest_kl(kernel, length_scale, rank) <= ARGUMENTS["epsilon"] * ARGUMENTS["n"]
    assert rank > 30


def test_a_rank_beyond_the_resolved_eigenvalues_is_refused():
    assert smallest_kl("matern32", 1e-3, 762) > 1000.0  # so 762, which a quadrature of 800 nodes suggests, is wrong
    with pytest.raises(InvalidInputError, match="no rank up to 2000 is proven to suffice"):
        mercer_rank(kernel="matern32", length_scale=1e-3, **ARGUMENTS)
    with pytest.raises(InvalidInputError, match="below 1 / 4000 of the range of the inputs"):
        mercer_rank(kernel="matern52", length_scale=1e-4, **ARGUMENTS)
    with pytest.raises(InvalidInputError, match="no rank up to 32768 is proven"):
        mercer_rank(kernel="matern12", length_scale=0.01, **ARGUMENTS)


@pytest.mark.parametrize("length_scale", [1e-17, 1e200, [1e-17, 1.0]])
def test_length_scales_beyond_float64_are_refused(length_scale):
    message = "length_scale / input_scale must lie between"
    with pytest.raises(InvalidInputError, match=message):
        mercer_rank(length_scale=length_scale, **ARGUMENTS)
    with pytest.raises(InvalidInputError, match=message):
        MercerFeatures(length_scale, rank=5).fit(np.eye(2))


@pytest.mark.parametrize("eigenvalues", [quadrature_eigenvalues, ritz_eigenvalues])
def test_one_dimensional_spectra_refuse_more_dimensions(eigenvalues):
    with pytest.raises(InvalidInputError, match="for one dimension, found a kernel with 2 length-scales"):
        eigenvalues(Matern32([1.0, 2.0]), 1.0)


@pytest.mark.parametrize("kernel", ["rational_quadratic", "periodic", "linear"])
def test_kernels_of_unknown_spectra_are_refused(kernel):
    with pytest.raises(InvalidInputError, match=f"the eigenvalues of the {kernel} kernel are not known"):
        mercer_rank(length_scale=1.0, kernel=kernel, **ARGUMENTS)
    for eigenvalues in (quadrature_eigenvalues, ritz_eigenvalues):
        with pytest.raises(InvalidInputError, match="are for Gaussian and Matern kernels"):
            eigenvalues(kernel_from_name(kernel)(), 1.0)
