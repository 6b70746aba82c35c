"""Fourier features of a given design: the stated sum of cosines, stationary, differentiable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.errors import InvalidInputError
from certgp.features import FourierMap
from certgp.features.spectral import SpectralDesign, iid_design
from certgp.kernels import Gaussian
from helpers import ALL_KERNELS, random_inputs, tensor

SCALES = np.array([0.6, 1.8])


def weighted_design(pairs: int = 7) -> SpectralDesign:
    rng = np.random.default_rng(0)
    return SpectralDesign(tensor(rng.standard_normal((pairs, 2))), tensor(rng.uniform(0.0, 0.3, pairs)))


def test_inner_products_are_the_weighted_sum_of_cosines():
    X, Z, design = random_inputs(0, 6, 2), random_inputs(1, 5, 2), weighted_design()
    features = FourierMap(Gaussian(SCALES), design)
    difference = (X[:, None] - Z) / tensor(SCALES)
    expected = (torch.cos(difference @ design.frequencies.mT) * design.weights).sum(-1)
    with torch.no_grad():
        torch.testing.assert_close(features(X) @ features(Z).mT, expected, rtol=1e-12, atol=1e-14)
    assert features.rank == 14


def test_gram_matrix_does_not_depend_on_the_origin():
    X, features = random_inputs(2, 9, 2), FourierMap(Gaussian(SCALES), weighted_design())
    with torch.no_grad():
        here, there = features(X), features(X + tensor([3.0, -7.0]))
    torch.testing.assert_close(here @ here.mT, there @ there.mT, rtol=1e-10, atol=1e-12)


def test_learned_length_scales_move_the_frequencies():
    X = random_inputs(3, 6, 2)
    features = FourierMap(Gaussian(SCALES), weighted_design())
    with torch.no_grad():
        before = features(X)
        features.log_length_scale.add_(np.log(2.0))
        torch.testing.assert_close(features(2.0 * X), before, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)
def test_gradient_in_the_inputs(family):
    design = iid_design(family(1.0), 6, 2, np.random.default_rng(1))
    assert torch.autograd.gradcheck(FourierMap(family(SCALES), design), (random_inputs(4, 5, 2).requires_grad_(),))


def test_frequencies_are_learned_on_request_only():
    assert not FourierMap(Gaussian(1.0), weighted_design()).frequencies.requires_grad
    assert FourierMap(Gaussian(1.0), weighted_design(), learn_frequencies=True).frequencies.requires_grad


def test_the_design_is_copied():
    design = weighted_design()
    features = FourierMap(Gaussian(1.0), design, learn_frequencies=True)
    with torch.no_grad():
        features.frequencies.zero_()
    assert float(design.frequencies.abs().min()) > 0.0


def test_negative_weights_are_refused():
    with pytest.raises(InvalidInputError, match="weights of a spectral design must not be negative"):
        FourierMap(Gaussian(1.0), SpectralDesign(torch.zeros((2, 1), dtype=torch.float64), tensor([0.5, -0.5])))


def test_does_not_claim_to_be_dominated_and_indeed_is_not():
    assert not FourierMap.dominated
    X = random_inputs(5, 30, 2)
    features = FourierMap(Gaussian(1.0), iid_design(Gaussian(1.0), 10, 2, np.random.default_rng(2)))
    with torch.no_grad():
        phi = features(X)
        gap = features.kernel(X, X) - phi @ phi.mT
    assert float(torch.linalg.eigvalsh(gap).min()) < -0.1


def test_float32_inputs_give_float32_features():
    X, features = random_inputs(6, 20, 2), FourierMap(Gaussian(SCALES), weighted_design())
    with torch.no_grad():
        single = features(X.float())
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), features(X), rtol=0.0, atol=1e-5)
