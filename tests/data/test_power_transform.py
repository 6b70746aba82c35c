"""The power transform of inputs: what Yeo and Johnson wrote, increasing, the same for arrays and tensors, smooth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import power_transform

from certgp.data import Standardiser
from certgp.data.warp import BOUNDS, Warp

RNG = np.random.default_rng(0)
SKEWED = np.stack(
    [np.exp(RNG.standard_normal(600)), RNG.standard_normal(600), -(RNG.standard_exponential(600) ** 2)], 1
)


def warped_units(X):
    units = Standardiser.fit(X, X[:, 0])
    return Standardiser(
        units.x_mean, units.x_scale, units.y_mean, units.y_scale, units.ignored, Warp.fit(units.inputs(X))
    )


def test_powers_are_those_of_scikit_learn():
    Z = Standardiser.fit(SKEWED, SKEWED[:, 0]).inputs(SKEWED)
    warp = Warp.fit(Z)
    np.testing.assert_allclose(warp(torch.from_numpy(Z)).numpy(), power_transform(Z), atol=5e-3)
    assert warp.power[0] < 0.0 < 0.8 < warp.power[1] < 1.2 < 2.0 < warp.power[2]


def test_warped_columns_have_zero_mean_and_unit_variance():
    found = warped_units(SKEWED).inputs(SKEWED)
    np.testing.assert_allclose(found.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.std(0), 1.0, rtol=1e-12)


@given(power=st.floats(*BOUNDS), x=st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=20))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_it_never_decreases_and_stays_finite(power, x):
    power = power if min(abs(power), abs(power - 2.0)) > 1e-3 else 1e-3
    warp = Warp(np.array([power]), np.zeros(1), np.ones(1), np.array([-3.0]), np.array([40.0]))
    found = warp(torch.tensor(sorted(x), dtype=torch.float64)[:, None])
    assert found.isfinite().all()
    assert (found.diff(dim=0) >= 0.0).all()
    far = warp(torch.tensor([[-1e9], [-1e8], [1e8], [1e9]], dtype=torch.float64))
    assert (far.diff(dim=0) > 1.0).all()  # no bound


def test_it_increases_where_rows_are():
    warp = warped_units(SKEWED).warp
    x = torch.linspace(-5.0, 5.0, 2001, dtype=torch.float64)[:, None].expand(-1, 3)
    assert (warp(x).diff(dim=0) > 0.0).all()


def test_tensors_and_arrays_agree_and_gradients_are_right():
    units = warped_units(SKEWED)
    np.testing.assert_allclose(units.tensor(torch.from_numpy(SKEWED)).numpy(), units.inputs(SKEWED), rtol=1e-12)
    outside = SKEWED.min(0) - 1.0, SKEWED.max(0) + 1.0
    rows = torch.from_numpy(np.stack([*SKEWED[:3], *outside])).requires_grad_()
    assert torch.autograd.gradcheck(units.tensor, rows)
    zero = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    units.warp(zero).sum().backward()
    np.testing.assert_allclose(zero.grad[0], 1.0 / units.warp.scale)  # w has slope one at zero


def test_columns_without_a_shape_are_left_alone_to_the_last_bit():
    X = np.stack([np.full(50, 3.0), np.arange(50) % 2, np.exp(RNG.standard_normal(50))], 1)
    plain, warped = Standardiser.fit(X, X[:, 2]), warped_units(X)
    np.testing.assert_array_equal(warped.powers[:2], 1.0)
    np.testing.assert_array_equal(warped.inputs(X)[:, :2], plain.inputs(X)[:, :2])


@pytest.mark.parametrize("x", [[0.0, 1e-300, 1.0], [0.0, 1.0, 1e90], [-1e8, -1e8 + 1e-7, 1.0]])
def test_odd_columns_stay_finite(x):
    X = np.array(x * 5)[:, None]
    assert np.isfinite(warped_units(X).inputs(X)).all()
