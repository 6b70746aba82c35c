"""Every kernel: values against scikit-learn, positive semi-definite, scaled per dimension, the right spectral law."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.gaussian_process import kernels as sk

from certgp.errors import CertgpError, InvalidInputError
from certgp.kernels import Gaussian, Kernel, Matern12, Matern32, Matern52, kernel_from_name
from helpers import ALL_KERNELS, INPUT_LAWS, random_inputs, tensor, z_scores

SCALES = np.array([0.4, 1.1, 2.7])
SKLEARN = {
    "gaussian": sk.RBF(SCALES),
    "matern12": sk.Matern(SCALES, nu=0.5),
    "matern32": sk.Matern(SCALES, nu=1.5),
    "matern52": sk.Matern(SCALES, nu=2.5),
}
DEGREES = {"matern12": 1, "matern32": 3, "matern52": 5}
SLOPES = {  # u'(r) / r
    "gaussian": lambda r: -torch.exp(-0.5 * r**2),
    "matern12": lambda r: -torch.exp(-r) / r,
    "matern32": lambda r: -3.0 * torch.exp(-(3.0**0.5) * r),
    "matern52": lambda r: -5.0 / 3.0 * (1.0 + 5.0**0.5 * r) * torch.exp(-(5.0**0.5) * r),
}
families = pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)


@families
def test_values_agree_with_scikit_learn(family):
    X, Z = random_inputs(0, 30, 3), random_inputs(1, 20, 3)
    found = family(SCALES, 1.7)(X, Z).numpy()
    np.testing.assert_allclose(found, 1.7 * SKLEARN[family.name](X.numpy(), Z.numpy()), rtol=1e-12, atol=1e-14)


@families
def test_nearly_equal_points_far_from_the_origin(family):
    """No cancellation of large coordinates: k(x, x + h) near 1e4 is k(0, h)."""
    X = 1e4 + random_inputs(2, 6, 3)
    shift = 1e-3 * random_inputs(3, 6, 3)
    Z = X + shift
    near_zero = family(SCALES)(torch.zeros(1, 3, dtype=torch.float64), Z - X)[0]
    far_away = torch.stack([family(SCALES)(X[i : i + 1], Z[i : i + 1])[0, 0] for i in range(6)])
    torch.testing.assert_close(far_away, near_zero, rtol=1e-9, atol=0.0)


@given(
    family=st.sampled_from(ALL_KERNELS),
    law=st.sampled_from(sorted(INPUT_LAWS)),
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 40),
    dimension=st.integers(1, 6),
    scale=st.floats(0.05, 20.0),
)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_symmetric_positive_semidefinite_with_constant_diagonal(family, law, seed, rows, dimension, scale):
    X = random_inputs(seed, rows, dimension, law)
    kernel = family(scale, 2.5)
    K = kernel(X, X)
    torch.testing.assert_close(K, K.mT, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(K.diagonal(), kernel.diagonal(X), rtol=1e-12, atol=0.0)
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-12 * 2.5 * rows
    assert float(K.min()) >= 0.0


@families
def test_length_scales_divide_the_inputs_dimension_by_dimension(family):
    X, Z = random_inputs(4, 12, 3), random_inputs(5, 9, 3)
    torch.testing.assert_close(
        family(SCALES)(X, Z), family(1.0)(X / tensor(SCALES), Z / tensor(SCALES)), rtol=1e-12, atol=1e-15
    )
    torch.testing.assert_close(family(0.7)(X, Z), family([0.7, 0.7, 0.7])(X, Z), rtol=1e-13, atol=1e-15)


@families
def test_signal_variance_multiplies(family):
    X = random_inputs(6, 8, 2)
    unit = family(0.6)
    other = unit.with_signal_variance(3.5)
    assert type(other) is family
    assert float(other.signal_variance) == 3.5
    torch.testing.assert_close(other(X, X), 3.5 * unit(X, X), rtol=1e-14, atol=0.0)


@families
def test_gradient_flows_to_inputs_and_parameters(family):
    arguments = random_inputs(7, 4, 2), random_inputs(8, 3, 2), tensor([0.8, 1.9]), tensor(1.3)

    def value(X, Z, length_scale, signal_variance):
        return family(length_scale, signal_variance)(X, Z)

    assert torch.autograd.gradcheck(value, [a.requires_grad_() for a in arguments])


@families
def test_gradient_where_rows_are_the_same(family):
    """A distance of zero has no slope; the length-scales must not notice it."""
    X = random_inputs(7, 5, 2)
    X = torch.cat([X, X[:2]])
    assert torch.autograd.gradcheck(lambda scale: family(scale)(X, X), [tensor([0.8, 1.9]).requires_grad_()])


@families
@pytest.mark.parametrize("distance", [1e-3, 1e-8, 1e-13])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradient_where_rows_nearly_coincide(family, distance, dtype):
    """No cancellation: the same as from all differences, in which a kink does no harm."""
    X = 3.0 + random_inputs(7, 40, 3)
    Z = torch.cat([X[:20] + distance * random_inputs(8, 20, 3), random_inputs(9, 10, 3)])
    G, scale = random_inputs(10, 40, 30).to(dtype), tensor(SCALES).requires_grad_()
    arguments = [each.to(dtype).requires_grad_() for each in (X, Z)]
    found = torch.autograd.grad(family(scale).unit(*arguments), [*arguments, scale], G)
    centre = arguments[1].detach().mean(0)
    P, Q = ((each.detach() - centre) / scale.detach().to(dtype) for each in arguments)  # as they are rounded
    difference = (P[:, None] - Q).double()
    slopes = G.double() * SLOPES[family.name](difference.norm(dim=2).clamp_min(1e-300))
    pulls = slopes[:, :, None] * difference / tensor(SCALES)
    expected = pulls.sum(1), -pulls.sum(0), -(pulls * difference).sum((0, 1))
    digits = 1e-11 if dtype is torch.float64 else 2e-4
    for one, other in zip(found, expected, strict=True):
        assert float((one - other).norm() / other.norm()) < digits


@families
def test_second_derivatives_are_refused(family):
    """What is saved on the way forward would count as constant, and the curvature would be wrong without a word."""
    X = random_inputs(7, 5, 2)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        torch.autograd.functional.hessian(lambda scale: family(scale)(X, X).sum(), tensor([0.8, 1.9]))


@families
def test_gradient_of_more_rows_than_one_part_has(family, monkeypatch):
    monkeypatch.setattr("certgp.kernels.stationary._PART", 12)
    arguments = random_inputs(7, 11, 2), random_inputs(8, 3, 2), tensor([0.8, 1.9])
    value = family(SCALES[:2])(arguments[0], arguments[1])
    assert value.shape == (11, 3)
    assert torch.autograd.gradcheck(lambda X, Z, scale: family(scale)(X, Z), [a.requires_grad_() for a in arguments])


# -------------------- spectral law


@families
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_spectral_log_density(family, dimension):
    omega = 3.0 * random_inputs(9, 50, dimension).numpy()
    if family is Gaussian:
        expected = multivariate_normal(np.zeros(dimension)).logpdf(omega)
    else:
        expected = multivariate_t(np.zeros(dimension), df=DEGREES[family.name]).logpdf(omega)
    found = family(1.0).spectral_log_density(tensor(omega)).numpy()
    np.testing.assert_allclose(found, np.reshape(expected, -1), rtol=1e-12)


def worst_spectral_z(family: type[Kernel], sample, seeds: int = 200) -> float:
    """Largest |z| of the mean of cos(eta'(x - x')) against the kernel over several differences, 3 dimensions, ARD."""
    differences = tensor([[0.3, 0.0, 0.0], [0.2, 0.5, -0.4], [-0.5, 1.0, 2.0], [0.0, 0.0, 3.0]])
    kernel = family(SCALES)
    estimates = [
        torch.cos(sample(kernel, np.random.default_rng(s)) @ differences.mT).mean(0).numpy() for s in range(seeds)
    ]
    target = kernel(differences, torch.zeros(1, 3, dtype=torch.float64))[:, 0].numpy()
    return float(np.abs(z_scores(np.array(estimates), target)).max())


@families
def test_spectral_sample_has_the_kernel_as_its_characteristic_function(family):
    assert worst_spectral_z(family, lambda kernel, rng: kernel.spectral_sample(64, 3, rng)) < 4.5


@families
def test_spectral_check_notices_a_wrong_scale(family):
    assert worst_spectral_z(family, lambda kernel, rng: 2.0**0.5 * kernel.spectral_sample(64, 3, rng)) > 10.0


# -------------------- arguments


def test_kernels_by_name():
    assert [kernel_from_name(k.name) for k in ALL_KERNELS] == [Gaussian, Matern12, Matern32, Matern52]


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"unknown kernel 'rbf'; known kernels: gaussian, .*matern52, periodic"):
        kernel_from_name("rbf")


@families
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, -2.0], [], [1.0, np.nan]])
def test_length_scales_must_be_positive_and_finite(family, bad):
    with pytest.raises(InvalidInputError, match="length_scale must be positive and finite, found"):
        family(bad)


@families
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_signal_variance_must_be_positive_and_finite(family, bad):
    with pytest.raises(InvalidInputError, match="signal_variance must be positive and finite, found"):
        family(1.0, bad)


@families
def test_a_matrix_of_length_scales_or_two_variances_are_refused(family):
    with pytest.raises(InvalidInputError, match="one number or one per dimension"):
        family(np.ones((2, 2)))
    with pytest.raises(InvalidInputError, match="signal_variance takes one number"):
        family(1.0, tensor([1.0, 2.0]))


@pytest.mark.parametrize("family", [Matern12, Matern32, Matern52], ids=lambda family: family.name)
def test_matern_refuses_a_mercer_expansion_and_says_what_to_do(family):
    with pytest.raises(
        InvalidInputError, match=f"the {family.name} kernel has no closed-form Mercer expansion.*Use kernel='gaussian'"
    ):
        family(1.0).mercer(tensor([1.0]))


@families
def test_repr_names_the_kernel_and_its_numbers(family):
    text = repr(family([0.5, 2.0], 1.25))
    assert text.startswith(family.__name__)
    assert "0.5" in text
    assert "2." in text
    assert "signal_variance=1.25" in text


@families
def test_repr_of_a_kernel_under_training(family):
    kernel = family(tensor([0.5, 2.0]).requires_grad_(), tensor(1.25).requires_grad_())
    assert "signal_variance=1.25" in repr(kernel)


@families
def test_kernels_are_immutable(family):
    with pytest.raises(AttributeError):
        family(1.0).length_scale = tensor(2.0)


def test_invalid_input_is_a_value_error_of_this_library():
    with pytest.raises(ValueError):
        Gaussian(-1.0)
    with pytest.raises(CertgpError):
        Gaussian(-1.0)
