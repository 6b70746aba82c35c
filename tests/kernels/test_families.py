"""Every kernel, plain or composed: a covariance, with all of its parameters, on its own columns, in any units."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk
from torch import nn

from certgp.errors import InvalidInputError
from certgp.kernels import (
    Gaussian,
    Kernel,
    KernelParameters,
    Linear,
    Matern32,
    Periodic,
    Product,
    RationalQuadratic,
    Sum,
    kernel_from_description,
    registered_kernels,
)
from helpers import ALL_KERNELS, CONSTANT, INPUT_LAWS, VARYING, dense_kernel, random_inputs, relative_error, tensor

PLAIN: dict[str, Kernel] = {family.name: family([0.7, 1.9], 1.3) for family in ALL_KERNELS}
EVERY = PLAIN | CONSTANT | VARYING
every = pytest.mark.parametrize("name", EVERY)
MEAN, SCALE, Y_SCALE = np.array([3.0, -40.0]), np.array([0.2, 17.0]), 2.5


@every
def test_values_are_those_of_dense_numpy(name):
    X, Z = random_inputs(0, 30, 2), random_inputs(1, 20, 2, "uniform")
    found = EVERY[name](X, Z).numpy()
    np.testing.assert_allclose(found, dense_kernel(EVERY[name], X.numpy(), Z.numpy()), rtol=1e-11, atol=1e-13)
    unit = float(EVERY[name].signal_variance) * EVERY[name].unit(X, Z)
    np.testing.assert_allclose(found, unit.numpy(), rtol=1e-15)


def test_new_families_agree_with_scikit_learn():
    X, Z = random_inputs(2, 30, 1), random_inputs(3, 20, 1)
    rational = sk.RationalQuadratic(length_scale=0.8, alpha=1.7)(X.numpy(), Z.numpy())
    np.testing.assert_allclose(RationalQuadratic(0.8, alpha=1.7)(X, Z), rational, rtol=1e-12)
    periodic = sk.ExpSineSquared(length_scale=0.8, periodicity=1.7)(X.numpy(), Z.numpy())
    np.testing.assert_allclose(Periodic(0.8, 1.7)(X, Z), periodic, rtol=1e-12)
    np.testing.assert_allclose(Linear(1.0)(X, Z), sk.DotProduct(0.0)(X.numpy(), Z.numpy()), rtol=1e-12)


@given(
    name=st.sampled_from(sorted(EVERY)),
    law=st.sampled_from(sorted(INPUT_LAWS)),
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 40),
)
@settings(deadline=None, derandomize=True, max_examples=120)
def test_symmetric_positive_semidefinite_with_the_diagonal_it_says(name, law, seed, rows):
    X, kernel = random_inputs(seed, rows, 2, law), EVERY[name]
    K = kernel(X, X)
    size = float(K.diagonal().max())
    torch.testing.assert_close(K, K.mT, rtol=1e-12, atol=1e-13 * size)
    torch.testing.assert_close(K.diagonal(), kernel.diagonal(X), rtol=1e-12, atol=1e-13 * size)
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-12 * size * rows
    if kernel.constant_diagonal:
        torch.testing.assert_close(kernel.diagonal(X), kernel.signal_variance.expand(rows), rtol=1e-15, atol=0.0)


def test_which_diagonals_vary():
    assert all(kernel.constant_diagonal for kernel in (PLAIN | CONSTANT).values())
    assert not any(kernel.constant_diagonal for kernel in VARYING.values())


@every
def test_gradients_flow_to_inputs_and_every_parameter(name):
    kernel = EVERY[name].expanded(2)
    names = [each for each in kernel.values if each.split("__")[-1] != "centre"]
    X, Z = random_inputs(7, 4, 2), random_inputs(8, 3, 2)

    def value(X, Z, *parameters):
        return kernel.replace(**dict(zip(names, parameters, strict=True)))(X, Z)

    inputs = [X, Z, *(kernel.values[each].clone() for each in names)]
    assert torch.autograd.gradcheck(value, [each.requires_grad_() for each in inputs])

    def diagonal(X, *parameters):
        return kernel.replace(**dict(zip(names, parameters, strict=True))).diagonal(X)

    if not kernel.constant_diagonal:
        assert torch.autograd.gradcheck(diagonal, [inputs[0], *inputs[2:]])


# -------------------- parameters


@every
def test_replace_keeps_everything_else(name):
    kernel = EVERY[name]
    for changed, value in kernel.values.items():
        other = kernel.replace(**{changed: 1.25 * value + 0.1})
        assert type(other) is type(kernel)
        kept = {each: other.values[each] for each in kernel.values if each != changed}
        if isinstance(kernel, (Sum, Product)) and changed.endswith("variance"):
            continue  # what a part's size becomes in a product is tested below
        assert all(torch.equal(kept[each], kernel.values[each]) for each in kept)
        torch.testing.assert_close(other.values[changed], 1.25 * value + 0.1)
    assert kernel.replace().describe() == kernel.describe()


@every
def test_signal_variance_is_the_overall_factor(name):
    X, kernel = random_inputs(5, 12, 2), EVERY[name]
    other = kernel.with_signal_variance(3.5)
    assert float(other.signal_variance) == pytest.approx(3.5, rel=1e-14)
    torch.testing.assert_close(other.unit(X, X), kernel.unit(X, X), rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(other(X, X), 3.5 * kernel.unit(X, X), rtol=1e-13, atol=1e-13)


@every
def test_values_can_be_copied_and_pickled_and_not_changed(name):
    X, kernel = random_inputs(5, 12, 2), EVERY[name]
    for twin in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert torch.equal(twin(X, X), kernel(X, X))
    with pytest.raises(AttributeError, match="immutable"):
        kernel.columns = None


@every
def test_repr_shows_every_parameter(name):
    text = repr(EVERY[name])
    for each in EVERY[name].values:
        assert f"{each.split('__')[-1]}=" in text
    if name == "columns":
        assert "columns=[1]" in text


def test_constructors_tell_their_arguments():
    assert str(inspect.signature(Periodic)) == "(length_scale=None, period=None, signal_variance=None, *, columns=None)"
    with pytest.raises(InvalidInputError, match=r"Gaussian takes length_scale, signal_variance and columns; not alpha"):
        Gaussian(alpha=2.0)
    with pytest.raises(InvalidInputError, match=r"not 3.0"):
        Gaussian(1.0, 2.0, 3.0)


def test_unknown_parameters_are_refused_by_name():
    with pytest.raises(InvalidInputError, match="the linear kernel has no parameter length_scale; it has variance, ce"):
        Linear().replace(length_scale=2.0)
    with pytest.raises(InvalidInputError, match="has no parameter gaussian__alpha; it has gaussian__length_scale, "):
        (Gaussian() + Linear()).replace(gaussian__alpha=2.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, [1.0, -2.0]])
def test_parameters_of_every_family_must_be_positive_and_finite(bad):
    for family in registered_kernels().values():
        for name, parameter in family.parameters.items():
            if parameter.positive:
                with pytest.raises(InvalidInputError, match=f"{name} (must be positive and finite|takes one number)"):
                    family(**{name: bad})
    with pytest.raises(InvalidInputError, match="centre must be finite"):
        Linear(1.0, np.nan)


def test_parameters_of_the_wrong_shape_are_refused():
    with pytest.raises(InvalidInputError, match=r"alpha takes one number, found an array of shape \(2,\)"):
        RationalQuadratic(alpha=[1.0, 2.0])
    with pytest.raises(InvalidInputError, match=r"period takes one number or one per dimension, found .*\(2, 2\)"):
        Periodic(period=np.ones((2, 2)))
    with pytest.raises(InvalidInputError, match=r"length_scale has 3 numbers but the kernel works in 2 dimension\(s\)"):
        (Gaussian([1.0, 2.0, 3.0]) + Linear()).expanded(2)
    with pytest.raises(InvalidInputError, match=r"length_scale has 2 numbers but the kernel works in 1 dimension\(s\)"):
        Gaussian([1.0, 2.0], columns=[1]).expanded(4)


# -------------------- columns


def test_columns_are_all_that_a_kernel_sees():
    X, Z = random_inputs(5, 12, 4), random_inputs(6, 9, 4)
    for family in (Gaussian, Matern32, Periodic, RationalQuadratic, Linear):
        torch.testing.assert_close(family(columns=[2, 0])(X, Z), family()(X[:, [2, 0]], Z[:, [2, 0]]))
    kernel = Gaussian([1.0, 2.0], columns=[2, 0]).expanded(4)
    assert kernel.values["length_scale"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [[], [0, 0], [-1], [0.5], [True], "01"])
def test_columns_must_be_distinct_numbers(bad):
    with pytest.raises(InvalidInputError, match="columns must be distinct whole numbers from 0 on"):
        Gaussian(columns=bad)


def test_columns_beyond_the_table_are_refused():
    with pytest.raises(
        InvalidInputError, match=r"names column 5, but the inputs have 3 column\(s\); number them from 0"
    ):
        (Gaussian() * Matern32(columns=[1, 5])).expanded(3)


def test_along_which_columns_a_kernel_decays():
    assert Gaussian().decaying_columns(3) == {0, 1, 2}
    assert (Gaussian() + Linear()).decaying_columns(2) == set()
    assert (Gaussian(columns=[0]) * Matern32(columns=[1])).decaying_columns(2) == {0, 1}
    assert (Gaussian(columns=[0]) + Matern32()).decaying_columns(2) == {0}
    assert (Matern32() * Periodic()).decaying_columns(2) == {0, 1}


# -------------------- units


@every
def test_units_follow_their_definition_and_go_back(name):
    X, kernel = random_inputs(9, 15, 2), EVERY[name]
    user = kernel.to_user(MEAN, SCALE, Y_SCALE)
    K = Y_SCALE**2 * kernel(X, X)
    torch.testing.assert_close(user(X * tensor(SCALE) + tensor(MEAN), X * tensor(SCALE) + tensor(MEAN)), K)
    back = user.to_standardised(MEAN, SCALE, Y_SCALE)
    expanded = kernel.expanded(2)
    for each, value in expanded.values.items():
        torch.testing.assert_close(back.values[each], value, rtol=1e-13, atol=1e-14)


def test_what_was_not_given_has_its_default_in_standardised_units():
    kernel = (Gaussian() + Linear()).to_standardised(MEAN, SCALE, Y_SCALE, default_length=0.5)
    assert kernel.values["gaussian__length_scale"].tolist() == [0.5, 0.5]
    assert kernel.values["linear__centre"].tolist() == [0.0, 0.0]
    user = kernel.to_user(MEAN, SCALE, Y_SCALE)
    np.testing.assert_allclose(user.values["linear__centre"], MEAN)
    assert not (Gaussian() + Linear(2.0)).lengths_given
    assert (Linear() + Matern32() * Periodic(period=2.0)).lengths_given
    given = Gaussian(3.0).to_standardised(MEAN, SCALE, Y_SCALE, default_length=0.5)
    np.testing.assert_array_equal(given.values["length_scale"], 3.0 / SCALE)
    assert float(given.signal_variance) == 1.0


# -------------------- sums and products


def test_sums_and_products_are_flattened_and_their_parts_numbered():
    total = Gaussian() + (Matern32() + Gaussian()) + Gaussian()
    assert list(total.parts) == ["gaussian", "matern32", "gaussian_2", "gaussian_3"]
    product = (Gaussian(signal_variance=2.0) * Matern32(signal_variance=3.0)) * Gaussian(signal_variance=0.5)
    assert list(product.parts) == ["gaussian", "matern32", "gaussian_2"]
    assert float(product.signal_variance) == 3.0
    assert {float(part.signal_variance) for part in product.parts.values()} == {1.0}


def test_a_size_given_to_a_factor_belongs_to_the_product():
    X, kernel = random_inputs(9, 15, 2), CONSTANT["product"]
    other = kernel.replace(periodic__signal_variance=4.0)
    torch.testing.assert_close(other(X, X), 4.0 * kernel(X, X), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("other", [2.0, "gaussian", None])
def test_only_kernels_are_added_and_multiplied(other):
    with pytest.raises(TypeError):
        Gaussian() + other
    with pytest.raises(TypeError):
        Gaussian() * other
    with pytest.raises(InvalidInputError, match="a sum of kernels takes one kernel or more"):
        Sum(other)
    with pytest.raises(InvalidInputError, match="a product of kernels takes one kernel or more"):
        Product()


# -------------------- learning


@every
def test_a_module_holds_every_learned_parameter_and_gives_the_unit_kernel_back(name):
    X, kernel, module = random_inputs(9, 15, 2), EVERY[name], nn.Module()
    learned = KernelParameters(kernel, 2, module)
    found = learned.kernel(module)
    torch.testing.assert_close(found(X, X), kernel.unit(X, X), rtol=1e-12, atol=1e-13)
    assert float(found.signal_variance.detach()) == pytest.approx(1.0, abs=1e-15)
    assert not learned.kernel(module, detached=True)(X, X).requires_grad
    names = dict(module.named_parameters())
    assert set(learned.bounds()) == set(names)
    for p in names.values():
        with torch.no_grad():
            p.add_(0.3 * torch.randn(p.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    moved = learned.kernel(module)
    weights = random_inputs(3, 15, 15)
    gradients = torch.autograd.grad((weights * moved(X, X)).sum(), list(names.values()))
    assert all(bool(torch.isfinite(g).all()) for g in gradients)
    for each, gradient in zip(names, gradients, strict=True):
        alone = each.endswith("linear__variance") and gradient.numel() == 1 and "product" in each  # the factor says it
        assert float(gradient.abs().max()) > 1e-6 or alone, each
    # a description and the tensors lead to the same kernel again, whatever signal variance was described
    again, twin = nn.Module(), kernel_from_description(moved.with_signal_variance(7.0).describe())
    rebuilt = KernelParameters(twin, 2, again)
    again.load_state_dict(module.state_dict())
    torch.testing.assert_close(rebuilt.kernel(again)(X, X), moved(X, X), rtol=1e-13, atol=1e-14)


def test_names_in_a_module():
    module = nn.Module()
    KernelParameters(Gaussian() + Linear() + Matern32() * Periodic(), 2, module)
    assert [name for name, _ in module.named_parameters()] == [
        "log_gaussian__length_scale",
        "log_linear__variance",
        "log_product__matern32__length_scale",
        "log_product__periodic__length_scale",
        "log_product__periodic__period",
        "log_product__signal_variance",
    ]
    plain = nn.Module()
    learned = KernelParameters(RationalQuadratic(), 2, plain)
    assert {name: tuple(p.shape) for name, p in plain.named_parameters()} == {"log_length_scale": (2,), "log_alpha": ()}
    assert [p.shape for p in learned.lengths(plain)] == [(2,)]


# -------------------- files


@every
def test_descriptions_are_exact(name):
    X, kernel = random_inputs(9, 15, 2), EVERY[name].replace()
    again = kernel_from_description(json.loads(json.dumps(kernel.describe())))
    assert repr(again) == repr(kernel)
    assert again.describe() == kernel.describe()
    assert torch.equal(again(X, X), kernel(X, X))


def test_the_form_of_format_2_is_read():
    kernel = kernel_from_description({"kernel": "matern32", "length_scale": [0.3, 2.0], "signal_variance": 1.5})
    assert isinstance(kernel, Matern32)
    assert relative_error(kernel.values["length_scale"], [0.3, 2.0]) == 0.0
    assert float(kernel.signal_variance) == 1.5
