"""The starting length-scales are the best of a few multiples of the given ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian, Linear, Periodic
from certgp.training import LowRankObjective, choose_starting_scale
from certgp.transforms import Identity
from helpers import random_inputs, random_target

FACTORS = (0.25, 1.0, 4.0, 16.0)
X = random_inputs(0, 100, 2)
SOURCE = ChunkSource(Chunk(X, random_target(X, 0)))
SCALES = np.array([0.1, 0.8])  # anisotropic: the optimal index set changes with the factor


def feature_map(name: str, scales: np.ndarray) -> FeatureMap:
    kernel = Gaussian(scales)
    return {
        "mercer": lambda: MercerMap(kernel, [1.0, 1.0], 15),
        "nystrom": lambda: NystromMap(kernel, X[:15]),
        "fourier": lambda: FourierMap(kernel, iid_design(kernel, 8, 2, np.random.default_rng(0))),
    }[name]()


def value_at(name: str, factor: float, objective: str) -> float:
    model = LowRankModel(Identity(2), feature_map(name, factor * SCALES))
    return LowRankObjective(model, SOURCE, LocalEngine(), objective).profile().value


@pytest.mark.parametrize("name", ["mercer", "nystrom", "fourier"])
@pytest.mark.parametrize("objective", ["elbo", "marginal"])
def test_the_best_factor_wins_and_the_model_is_left_as_if_built_there(name, objective):
    model = LowRankModel(Identity(2), feature_map(name, SCALES))
    choose_starting_scale(model, SOURCE, LocalEngine(), objective, FACTORS)
    best = min(FACTORS, key=lambda factor: value_at(name, factor, objective))
    rebuilt = LowRankModel(Identity(2), feature_map(name, best * SCALES))
    np.testing.assert_allclose(model.features.log_length_scale.detach().exp(), best * SCALES, rtol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(model(X), rebuilt(X), rtol=1e-9, atol=1e-12)
    assert model.features.log_length_scale.requires_grad


def test_all_lengths_of_a_composed_kernel_are_multiplied_and_nothing_else():
    kernel = Gaussian([0.01, 0.02]) * Periodic(1.3, 0.05) + Linear(0.7)
    model = LowRankModel(Identity(2), NystromMap(kernel, X[:15]))
    before = {name: p.detach().clone() for name, p in model.features.named_parameters()}
    choose_starting_scale(model, SOURCE, LocalEngine(), "elbo", (8.0, 8.0))
    for name, p in model.features.named_parameters():
        length = name in ("log_product__gaussian__length_scale", "log_product__periodic__period")
        np.testing.assert_allclose(p.detach() - before[name], np.log(8.0) if length else 0.0, atol=1e-14)
    without = LowRankModel(Identity(2), NystromMap(Linear(0.7), X[:15]))
    choose_starting_scale(without, SOURCE, LocalEngine(), "elbo")  # there is nothing to scan


def test_length_scales_too_short_for_the_rank_are_lengthened():
    model = LowRankModel(Identity(2), feature_map("mercer", SCALES))
    choose_starting_scale(model, SOURCE, LocalEngine(), "elbo", FACTORS)
    assert float(model.features.log_length_scale.detach().exp()[0]) > SCALES[0]
