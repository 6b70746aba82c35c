"""Ranks before fitting for Matern kernels: eigenvalues bounded from below, and the promise against dense matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from certgp.errors import InvalidInputError
from certgp.features import MercerFeatures
from certgp.guarantees import (
    matern12_eigenvalues,
    mercer_rank,
    mercer_tail,
    quadrature_eigenvalues,
    ritz_eigenvalues,
)
from certgp.guarantees.product_spectrum import diagonal_elements, lowest_frequencies, tail_bounds
from certgp.kernels import Matern12, Matern32, Matern52, kernel_from_name

ARGUMENTS = {"input_scale": 1.0, "n": 2000, "noise_variance": 0.1, "epsilon": 0.01}


def smallest_kl(kernel: str, length_scale: Any, rank: int, seed: int = 0, dimension: int = 1) -> float:
    """KL of the best approximation of this rank on fresh rows: 1/2 sum over i > r of x_i - ln(1 + x_i)."""
    half_width, n = math.sqrt(3.0), ARGUMENTS["n"]
    X = torch.from_numpy(np.random.default_rng(seed).uniform(-half_width, half_width, (n, dimension)))
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


# -------------------- several dimensions: theorem M2


@pytest.mark.parametrize("ratio", [0.01, 0.7, 50.0])
def test_in_one_dimension_the_diagonal_elements_of_matern12_are_its_eigenvalues(ratio):
    found, exact = diagonal_elements(1, np.array([ratio]), 300), matern12_eigenvalues(ratio, 0.5, 300)
    np.testing.assert_allclose(found, exact, rtol=2e-6)
    assert (found <= exact * (1.0 + 1e-12)).all()


@pytest.mark.parametrize(("degrees", "kernel"), [(3, Matern32), (5, Matern52)])
def test_in_one_dimension_the_bound_is_above_that_of_ritz_values_and_close(degrees, kernel):
    ritz = 1.0 - np.cumsum(ritz_eigenvalues(kernel(0.1), 0.5, cells=100))
    bound = tail_bounds(degrees, np.array([0.1]), 64)[1:]
    assert (bound >= ritz[:64]).all()
    np.testing.assert_allclose(bound[:10], ritz[:10], rtol=0.05)


def test_a_dimension_of_long_length_scale_hardly_counts():
    """With l -> infinity in the second column the spectrum is that of the first."""
    both = ([0.7, 1e6], 0.7)
    two, one = (mercer_tail(length_scale=scales, input_scale=1.0, rank=5, kernel="matern32") for scales in both)
    assert two == pytest.approx(one, rel=0.05)
    assert two >= one


def test_tails_do_not_depend_on_the_order_of_columns_and_scale_with_the_signal():
    options = {"input_scale": [1.0, 0.5, 2.0], "rank": 40, "kernel": "matern52"}
    found = mercer_tail(length_scale=[1.0, 0.3, 5.0], **options)
    other = mercer_tail(length_scale=[0.3, 5.0, 1.0], **options | {"input_scale": [0.5, 2.0, 1.0]})
    assert other == pytest.approx(found, rel=1e-10)
    assert mercer_tail(length_scale=[1.0, 0.3, 5.0], signal_variance=3.0, **options) == pytest.approx(3.0 * found)


@pytest.mark.parametrize(
    ("kernel", "length_scale", "dimension"),
    [("matern12", 100.0, 2), ("matern32", 1.5, 2), ("matern52", [1.0, 2.0, 3.0], 3)],
)
def test_ranks_in_several_dimensions_keep_their_promise(kernel, length_scale, dimension):
    rank = mercer_rank(kernel=kernel, length_scale=length_scale, **ARGUMENTS | {"input_scale": [1.0] * dimension})
    assert 20 < rank < ARGUMENTS["n"]
    kl = smallest_kl(kernel, np.full(dimension, length_scale), rank, dimension=dimension)
    assert kl <= ARGUMENTS["epsilon"] * ARGUMENTS["n"]


def test_the_indices_are_those_of_lowest_frequency():
    ratios = np.array([0.3, 1.0, 0.7])
    found = lowest_frequencies(ratios, 200)
    every = np.stack(np.meshgrid(*[np.arange(40)] * 3), -1).reshape(-1, 3)
    cost = np.sort(np.square(every * ratios).sum(1))[:200]
    np.testing.assert_allclose(np.square(found * ratios).sum(1), cost)
    assert len({tuple(index) for index in found}) == 200
    many = lowest_frequencies(np.full(30, 0.5), 5000)  # 31 of at most one step, and no more than memory allows
    assert len({tuple(index) for index in many}) == 5000


def test_what_matern_tails_cannot_say_is_refused():
    with pytest.raises(InvalidInputError, match="no rank up to 65536 is proven to suffice"):
        mercer_rank(kernel="matern12", length_scale=[1e-17, 1.0], **ARGUMENTS)
    options = {"length_scale": [1.0, 1.0], "input_scale": 1.0, "kernel": "matern12"}
    with pytest.raises(InvalidInputError, match="index_set='box' is about products of eigenfunctions"):
        mercer_tail(rank=5, index_set="box", **options)
    with pytest.raises(InvalidInputError, match="rank must be at most 65536 for the matern12 kernel, found 1000000"):
        mercer_tail(rank=1_000_000, **options)
    assert mercer_tail(rank=3, **options | {"length_scale": [1e200, 1e200]}) == pytest.approx(0.0, abs=1e-12)
