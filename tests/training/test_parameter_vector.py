"""A module's parameters as one vector."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from certgp.features import FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.kernels.parameters import LOG_SCALE_BOUNDS
from certgp.training import ParameterVector
from certgp.transforms import Projection
from helpers import identity_model, random_inputs


def projected_model() -> LowRankModel:
    X = random_inputs(0, 30, 4)
    projection = Projection(random_inputs(1, 4, 2), X.mean(0), X.mT.cov(correction=0))
    return LowRankModel(projection, MercerMap(Gaussian(0.8), [1.0, 1.0], 6))


def test_set_then_get_returns_the_same_numbers_and_changes_the_module():
    model = projected_model()
    vector = ParameterVector(model)
    values = np.random.default_rng(0).standard_normal(vector.get().size)
    vector.set(values)
    np.testing.assert_array_equal(vector.get(), values)
    flat = np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])
    np.testing.assert_array_equal(flat, values)


def test_the_vector_does_not_alias_the_module():
    vector = ParameterVector(projected_model())
    values = vector.get()
    before = values.copy()
    vector.set(values + 1.0)
    np.testing.assert_array_equal(values, before)
    values += 5.0
    np.testing.assert_allclose(vector.get(), before + 1.0)


def test_only_parameters_with_gradients_count():
    design = iid_design(Gaussian(1.0), 5, 2, np.random.default_rng(0))
    fixed, learned = (
        ParameterVector(FourierMap(Gaussian(1.0), design, learn_frequencies=learn)) for learn in (False, True)
    )
    assert fixed.get().size == 2
    assert learned.get().size == 2 + 10
    Z = random_inputs(2, 3, 2)
    assert ParameterVector(NystromMap(Gaussian(1.0), Z, learn_inducing=False)).get().size == 2
    assert ParameterVector(NystromMap(Gaussian(1.0), Z)).get().size == 2 + 6


def test_bounds_follow_the_parameters_by_name():
    vector = ParameterVector(projected_model())
    assert [name for name, _ in vector.named] == [
        "transform.directions",
        "features.log_length_scale",
        "features.log_input_scale",
    ]
    free = (-np.inf, np.inf)
    assert vector.bounds() == [free] * 8 + [LOG_SCALE_BOUNDS] * 2 + [(-3.0, 3.0)] * 2
    bare = identity_model(MercerMap(Gaussian([1.0]), [1.0], 3)).features
    assert ParameterVector(bare).bounds() == [LOG_SCALE_BOUNDS, (-3.0, 3.0)]


def test_float32_parameters_are_seen_as_float64():
    module = nn.Linear(2, 1)
    vector = ParameterVector(module)
    assert vector.get().dtype == np.float64
    vector.set(np.array([0.5, 0.25, 2.0]))
    assert module.weight.dtype == torch.float32
    np.testing.assert_array_equal(vector.get(), [0.5, 0.25, 2.0])


def test_a_module_without_parameters_is_an_empty_vector():
    vector = ParameterVector(nn.Module())
    assert vector.get().shape == (0,)
    assert vector.bounds() == []
    vector.set(np.zeros(0))
