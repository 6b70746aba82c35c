"""Objectives: right values, gradients that are derivatives in every parameter, and no trace of chunks or row order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design, widened_design
from certgp.gp import LowRankModel, elbo, exact_log_evidence, log_evidence
from certgp.gp.evidence import trace_gap
from certgp.kernels import Gaussian
from certgp.kernels.parameters import LOG_SCALE_BOUNDS
from certgp.training import ExactObjective, LowRankObjective
from certgp.transforms import Identity, Projection, Transform
from helpers import (
    ALL_KERNELS,
    CONSTANT,
    VARYING,
    central_differences,
    dense_kernel,
    feature_statistics,
    mercer_map_of,
    random_inputs,
    random_target,
    randomise,
    relative_error,
)

COMPOSED = CONSTANT | VARYING
ROWS, COLUMNS, DIMENSION = 50, 4, 2
X = random_inputs(0, ROWS, COLUMNS)
Y = torch.sin(1.5 * X[:, 0]) + 0.5 * torch.cos(1.3 * X[:, 1]) + 0.2 * random_inputs(9, ROWS, 1)[:, 0]


def transform_of(name: str) -> tuple[Transform, torch.Tensor]:
    """The transform and the data that go with it: (n, DIMENSION) features either way."""
    if name == "identity":
        return Identity(DIMENSION), X[:, :DIMENSION]
    directions = torch.eye(COLUMNS, DIMENSION, dtype=torch.float64) + 0.2 * random_inputs(1, COLUMNS, DIMENSION)
    return Projection(directions, X.mean(0), X.mT.cov(correction=0)), X


def feature_maps() -> dict[str, FeatureMap]:
    maps: dict[str, FeatureMap] = {}
    maps["mercer-optimal"] = MercerMap(Gaussian([0.9, 1.4]), [1.0, 1.2], 12)
    maps["mercer-with-holes"] = mercer_map_of(
        Gaussian([0.9, 1.4]), [1.0, 1.2], [[0, 0], [3, 0], [1, 2], [0, 4], [5, 1], [1, 0]]
    )
    for family in ALL_KERNELS:
        kernel, rng = family([0.9, 1.4]), np.random.default_rng(2)
        maps[f"fourier-{family.name}"] = FourierMap(kernel, iid_design(kernel, 8, DIMENSION, rng))
        maps[f"fourier-learned-{family.name}"] = FourierMap(
            kernel, iid_design(kernel, 8, DIMENSION, rng), learn_frequencies=True
        )
        maps[f"nystrom-{family.name}"] = NystromMap(kernel, random_inputs(3, 8, DIMENSION, "uniform"))
    for name, kernel in COMPOSED.items():
        # jitter: eight points of one column or one plane depend on each other, and differences would see the rounding
        maps[f"nystrom-{name}"] = NystromMap(kernel, random_inputs(3, 8, DIMENSION, "uniform"), jitter=1e-3)
    maps["fourier-widened-learned"] = FourierMap(
        Gaussian([0.9, 1.4]),
        widened_design(Gaussian(1.0), 8, DIMENSION, np.random.default_rng(4)),
        learn_frequencies=True,
    )
    return maps


def objective_of(
    features: str, transform: str, objective: str, chunk_rows: int | None = 30, order: np.ndarray | None = None
):
    g, rows = transform_of(transform)
    model = LowRankModel(g, feature_maps()[features])
    randomise(model, 5, 0.05)
    picked = slice(None) if order is None else order
    source = ChunkSource(Chunk(rows[picked], Y[picked]))
    return LowRankObjective(model, source, LocalEngine(chunk_rows), objective)


CASES = list(itertools.product(feature_maps(), ["identity", "projection"], ["marginal", "elbo"]))
cases = pytest.mark.parametrize(("features", "transform", "objective"), CASES)


@cases
def test_gradient_in_every_parameter(features, transform, objective):
    target = objective_of(features, transform, objective)
    start = target.start()
    _, gradient = target.evaluate(start)
    numeric = central_differences(lambda values: target.evaluate(values)[0], start, 2e-3)
    # the floor is the rounding of the differences themselves, for entries that (nearly) vanish
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-9)
    least = 1e-4 if "periodic" in features else 1e-3  # here the evidence depends little on it
    assert np.abs(gradient).max() > least  # the data speak, so the test is not empty


@cases
def test_value_is_the_negative_objective_per_row_at_the_profiled_variances(features, transform, objective):
    target = objective_of(features, transform, objective)
    value, _ = target.evaluate(target.start())
    profile = target.profile()
    rows = transform_of(transform)[1]
    with torch.no_grad():
        stats = feature_statistics(target.model.features, target.model.transform(rows), Y, profile.signal_variance)
    if objective == "elbo":
        expected = elbo(stats, max(0.0, trace_gap(stats)), profile.noise_variance)
    else:
        expected = log_evidence(stats, profile.noise_variance)
    np.testing.assert_allclose(value, -expected / ROWS, rtol=1e-7)
    np.testing.assert_allclose(profile.value / ROWS, value, rtol=1e-12)


INVARIANT = [
    "mercer-optimal",
    "fourier-learned-matern32",
    "nystrom-gaussian",
    "nystrom-matern12",
    "nystrom-gaussian + linear",
]


@pytest.mark.parametrize("features", INVARIANT)
@pytest.mark.parametrize("transform", ["identity", "projection"])
@pytest.mark.parametrize("objective", ["marginal", "elbo"])
@pytest.mark.parametrize("chunk_rows", [1, 7, 49, None])
def test_chunks_and_row_order_do_not_change_value_or_gradient(features, transform, objective, chunk_rows):
    whole = objective_of(features, transform, objective, ROWS)
    value, gradient = whole.evaluate(whole.start())
    for order in (None, np.random.default_rng(6).permutation(ROWS)):
        other = objective_of(features, transform, objective, chunk_rows, order)
        found, found_gradient = other.evaluate(other.start())
        assert relative_error(found, value) < 1e-9
        assert relative_error(found_gradient, gradient) < 1e-9


@pytest.mark.parametrize("kept", [True, False], ids=["features kept", "features computed twice"])
@pytest.mark.parametrize("transform", ["identity", "projection"])
@pytest.mark.parametrize("objective", ["marginal", "elbo"])
def test_sharpened_objective_is_the_same_function(transform, objective, kept):
    plain = objective_of("nystrom-gaussian", transform, objective)
    target = objective_of("nystrom-gaussian", transform, objective)
    target.folds.keeps_features = kept
    assert target.sharpen()
    assert not target.sharpen()  # once is all there is
    value, gradient = plain.evaluate(plain.start())
    found, found_gradient = target.evaluate(target.start())
    assert relative_error(found, value) < 1e-9
    assert relative_error(found_gradient, gradient) < 1e-7
    assert target.profile().value / ROWS == pytest.approx(found, rel=1e-12)


def test_only_maps_that_mix_can_be_sharpened():
    assert not objective_of("mercer-optimal", "identity", "elbo").sharpen()
    assert not exact_objective(Gaussian).sharpen()


def test_sharpened_objective_is_smooth_where_inducing_points_nearly_repeat():
    """Long length-scales and a large signal: mixing statistics amplifies their rounding, mixing rows does not."""
    rows = random_inputs(4, 4000, 2)
    y = 30.0 * rows[:, 0] + 20.0 * rows[:, 1] + 0.1 * random_inputs(5, 4000, 1)[:, 0]
    model = LowRankModel(Identity(2), NystromMap(Gaussian([20.0, 20.0]), rows[:30]))
    target = LowRankObjective(model, ChunkSource(Chunk(rows, y / y.std())), LocalEngine(), "elbo")
    start, direction = target.start(), np.random.default_rng(6).normal(size=target.start().shape)

    def jumps() -> float:
        return float(np.ptp([target.evaluate(start + step * direction)[0] for step in 1e-13 * np.arange(6)]))

    rough = jumps()
    assert target.sharpen()
    assert jumps() < 1e-8
    assert rough > 1e-6  # otherwise there is nothing to cure


def test_evaluate_leaves_its_argument_as_the_current_parameters():
    target = objective_of("mercer-optimal", "projection", "elbo")
    moved = target.start() + 0.1
    target.evaluate(moved)
    np.testing.assert_array_equal(target.start(), moved)
    assert len(target.bounds()) == moved.size


def test_float32_features_give_nearly_the_same_objective():
    double = objective_of("mercer-optimal", "identity", "elbo")
    rows = transform_of("identity")[1]
    source = ChunkSource(Chunk(rows.float(), Y.float()))
    single = LowRankObjective(double.model, source, LocalEngine(17), "elbo")
    value, gradient = double.evaluate(double.start())
    found, found_gradient = single.evaluate(double.start())
    assert found_gradient.dtype == np.float64
    assert abs(found - value) < 1e-5
    assert relative_error(found_gradient, gradient) < 1e-3


# -------------------- exact GP


def exact_objective(family, noise_ratio: float = 0.2) -> ExactObjective:
    return ExactObjective(family([0.9, 1.1, 1.4, 2.0]), Chunk(X, Y), noise_ratio)


@pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)
def test_exact_gradient_in_every_parameter(family):
    target = exact_objective(family)
    start = target.start()
    _, gradient = target.evaluate(start)
    numeric = central_differences(lambda values: target.evaluate(values)[0], start, 2e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-9)
    assert gradient.shape == (COLUMNS + 1,)


@pytest.mark.parametrize("name", COMPOSED)
def test_exact_gradient_in_every_parameter_of_composed_kernels(name):
    target = ExactObjective(COMPOSED[name], Chunk(X[:, :2], Y), 0.2)
    randomise(target.module, 5, 0.05)
    start = target.start()
    value, gradient = target.evaluate(start)
    numeric = central_differences(lambda values: target.evaluate(values)[0], start, 2e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-9)
    assert len(target.bounds()) == len(start)
    target.move_to(start)
    kernel, noise = target.solution()
    dense = torch.from_numpy(dense_kernel(kernel, X[:, :2].numpy(), X[:, :2].numpy()))
    np.testing.assert_allclose(value, -exact_log_evidence(dense, Y, noise) / ROWS, rtol=1e-10)


@pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)
def test_exact_value_is_the_negative_log_evidence_per_row(family):
    target = exact_objective(family)
    value, _ = target.evaluate(target.start())
    kernel, noise = target.solution()
    np.testing.assert_allclose(value, -exact_log_evidence(kernel(X, X), Y, noise) / ROWS, rtol=1e-10)
    assert type(kernel) is family
    assert not kernel.length_scale.requires_grad
    np.testing.assert_allclose(kernel.length_scale, [0.9, 1.1, 1.4, 2.0], rtol=1e-12)
    np.testing.assert_allclose(noise / float(kernel.signal_variance), 0.2, rtol=1e-12)


def test_exact_start_is_clipped_into_its_bounds():
    low = exact_objective(Gaussian, 1e-9)
    assert low.bounds() == [LOG_SCALE_BOUNDS] * COLUMNS + [pytest.approx((np.log(1e-4), np.log(1e4)))]
    np.testing.assert_allclose(low.start()[-1], np.log(1e-4))


def test_low_rank_value_approaches_the_exact_one():
    """One dimension, Mercer at large rank: the profiled marginal objective is that of the exact GP."""
    rows = random_inputs(7, 40, 1)
    y = random_target(rows, 7, 0.2)
    source = ChunkSource(Chunk(rows, y))
    model = LowRankModel(Identity(1), MercerMap(Gaussian([0.8]), [1.0], 80))
    target = LowRankObjective(model, source, LocalEngine(), "marginal")
    value, gradient = target.evaluate(target.start())
    profile = target.profile()
    exact = ExactObjective(Gaussian([0.8]), Chunk(rows, y), profile.noise_variance / profile.signal_variance)
    exact_value, exact_gradient = exact.evaluate(exact.start())
    np.testing.assert_allclose(value, exact_value, rtol=1e-8)
    np.testing.assert_allclose(profile.signal_variance, float(exact.solution()[0].signal_variance), rtol=1e-6)
    np.testing.assert_allclose(gradient[0], exact_gradient[0], rtol=1e-6)
    assert abs(exact_gradient[1]) < 1e-6  # the profiled noise ratio is a stationary point of the exact objective too
    assert abs(gradient[1]) < 1e-6  # and the input scale no longer matters
