"""Every sampling of every kernel converges to that kernel: no bias beyond Monte Carlo error, and a shrinking spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from certgp.errors import InvalidInputError
from certgp.features import FourierMap
from certgp.features.spectral import (
    SAMPLINGS,
    DataSummary,
    SpectralDesign,
    sample_modified_density,
    spectral_design,
    widened_design,
)
from certgp.kernels import Gaussian, Kernel, Matern12, Matern32, Matern52
from helpers import ALL_KERNELS, random_inputs, standard_errors, tensor, z_scores

Drawer = Callable[[Kernel, int, int, np.random.Generator], SpectralDesign]
SEEDS = 100
FEW, MANY = 6, 96
RADII = (0.3, 0.9, 1.5, 2.0, 2.7)
LIMIT = 4.5  # |z| of a correct design exceeds this about once in 150 000 draws
NOTICED = 1.5 * LIMIT  # what a wrong design must exceed

families = pytest.mark.parametrize("family", ALL_KERNELS, ids=lambda family: family.name)
dimensions = pytest.mark.parametrize("dimension", [1, 3, 8])


def kernel_of(family: type[Kernel], dimension: int) -> Kernel:
    return family(np.linspace(0.7, 1.6, dimension))


def point_pairs(kernel: Kernel, dimension: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs at several distances in length-scales; along the diagonal, products of 1-D kernels differ most."""
    X = random_inputs(11, len(RADII), dimension)
    direction = torch.cat(
        [random_inputs(12, 2, dimension), torch.ones((len(RADII) - 2, dimension), dtype=torch.float64)]
    )
    direction = direction / direction.norm(dim=1, keepdim=True)
    return X, X + tensor(RADII)[:, None] * direction * kernel.length_scale


def data_of(kernel: Kernel, dimension: int) -> DataSummary:
    return DataSummary(random_inputs(13, 40, dimension) / kernel.length_scale, 4000, 0.1)


def named(sampling: str) -> Drawer:
    """A sampling by its name, with the data that it may ask for."""

    def draw(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
        return spectral_design(sampling, kernel, pairs, dimension, rng, data_of(kernel, dimension))

    return draw


@torch.no_grad()
def estimates(draw: Drawer, kernel: Kernel, dimension: int, pairs: int, seeds: int = SEEDS) -> np.ndarray:
    """phi(x)'phi(x') of each point pair over many seeds: (seeds, point pairs)."""
    X, Z = point_pairs(kernel, dimension)
    rows = []
    for seed in range(seeds):
        features = FourierMap(kernel, draw(kernel, pairs, dimension, np.random.default_rng(seed)))
        rows.append((features(X) * features(Z)).sum(1).numpy())
    return np.array(rows)


def target(kernel: Kernel, dimension: int) -> np.ndarray:
    return kernel(*point_pairs(kernel, dimension)).diagonal().numpy()


def worst_z(draw: Drawer, kernel: Kernel, dimension: int, pairs: int, seeds: int = SEEDS) -> float:
    found = estimates(draw, kernel, dimension, pairs, seeds)
    return float(np.abs(z_scores(found, target(kernel, dimension))).max())


def check_convergence(
    draw: Drawer, kernel: Kernel, dimension: int, few: int = FEW, many: int = MANY, seeds: int = SEEDS
) -> None:
    """Unbiased at both ranks; the error falls at least as fast as Monte Carlo does (with room for its own noise)."""
    truth = target(kernel, dimension)
    small, large = (estimates(draw, kernel, dimension, pairs, seeds) for pairs in (few, many))
    assert np.abs(z_scores(small, truth)).max() < LIMIT
    assert np.abs(z_scores(large, truth)).max() < LIMIT
    shrinkage = np.sqrt(np.square(large - truth).mean() / np.square(small - truth).mean())
    assert shrinkage < 1.3 * math.sqrt(few / many)


@families
@dimensions
@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "sobol", "widened", "leverage"])
def test_converges_to_the_kernel(family, dimension, sampling):
    # leverage draws a pool of 2000 frequencies for up to 40 pairs, so it is the dear one
    many, seeds = (40, 50) if sampling == "leverage" else (MANY, SEEDS)
    check_convergence(named(sampling), kernel_of(family, dimension), dimension, FEW, many, seeds)


@pytest.mark.parametrize(("dimension", "few", "many"), [(1, 64, 1024), (2, 1024, 16384)])
def test_modified_density_converges_to_the_gaussian_kernel(dimension, few, many):
    check_convergence(named("modified"), kernel_of(Gaussian, dimension), dimension, few, many)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_many_pairs_keep_the_promised_rate(sampling):
    """From 100 to 4,000 pairs independent draws lose a factor sqrt(40) = 6.3 of their error; Sobol points lose more."""
    kernel, rows, seeds = Gaussian(1.0), random_inputs(7, 50, 1), 8
    exact, offsets = kernel(rows, rows), (rows[:, None] - rows[None]).reshape(-1, 1)

    def error(pairs: int) -> float:
        found = []
        for seed in range(seeds):
            data = DataSummary(rows, 1_000, 0.1)
            design = spectral_design(sampling, kernel, pairs, 1, np.random.default_rng(seed), data)
            estimate = torch.cos(offsets @ design.frequencies.mT) @ design.weights
            found.append(float((estimate.reshape(exact.shape) - exact).square().mean()))
        return math.sqrt(np.mean(found))

    least = 12.0 if sampling in ("sobol", "widened") else math.sqrt(40.0) / 2.0
    assert error(100) / error(4_000) > least


def test_every_sampling_has_its_convergence_test():
    assert set(SAMPLINGS) == {"iid", "orthogonal", "sobol", "widened", "leverage", "modified"}


@families
@pytest.mark.parametrize("widening", [1.0, 1.2, 2.5])
def test_any_widening_is_unbiased(family, widening):
    assert worst_z(partial(widened_design, widening=widening), kernel_of(family, 2), 2, 64) < LIMIT


@families
@pytest.mark.parametrize("sampling", ["widened", "leverage"])
def test_importance_weights_sum_to_one_on_average_but_are_not_renormalised(family, sampling):
    kernel = kernel_of(family, 2)
    sums = [float(named(sampling)(kernel, FEW, 2, np.random.default_rng(seed)).weights.sum()) for seed in range(SEEDS)]
    assert np.std(sums) > 1e-3
    assert abs(float(z_scores(np.array(sums)[:, None], np.ones(1))[0])) < LIMIT


@torch.no_grad()
@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "sobol"])
def test_draws_of_the_spectral_law_have_features_of_unit_length(sampling):
    for family in ALL_KERNELS:
        design = named(sampling)(family(1.0), 37, 3, np.random.default_rng(0))
        assert (
            float(FourierMap(family(1.0), design)(random_inputs(0, 5, 3)).square().sum(1).sub(1.0).abs().max()) < 1e-12
        )


# -------------------- negative controls: the check can fail


def one_chi_square_per_coordinate(
    kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator
) -> SpectralDesign:
    """The classical error for Matern kernels: independent t coordinates, whose limit is a product of 1-D kernels."""
    degrees = {"matern12": 1, "matern32": 3, "matern52": 5}[kernel.name]
    scale = np.sqrt(degrees / chi2.rvs(degrees, size=(pairs, dimension), random_state=rng))
    omega = tensor(scale * rng.standard_normal((pairs, dimension)))
    return SpectralDesign(omega, torch.full((pairs,), 1.0 / pairs, dtype=torch.float64))


def stretched(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator, factor: float) -> SpectralDesign:
    design = named("iid")(kernel, pairs, dimension, rng)
    return SpectralDesign(factor * design.frequencies, design.weights)


def renormalised(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
    """Widened frequencies without their importance weights."""
    design = named("widened")(kernel, pairs, dimension, rng)
    return SpectralDesign(design.frequencies, torch.full((pairs,), 1.0 / pairs, dtype=torch.float64))


@pytest.mark.parametrize("family", [Matern12, Matern32, Matern52], ids=lambda family: family.name)
@pytest.mark.parametrize("dimension", [3, 8])
def test_check_notices_one_chi_square_per_coordinate(family, dimension):
    assert worst_z(one_chi_square_per_coordinate, kernel_of(family, dimension), dimension, MANY) > NOTICED


@families
@dimensions
@pytest.mark.parametrize("factor", [math.sqrt(2.0), math.sqrt(0.5), 2.0 * math.pi])
def test_check_notices_frequencies_of_another_convention(family, dimension, factor):
    assert worst_z(partial(stretched, factor=factor), kernel_of(family, dimension), dimension, MANY) > NOTICED


@families
@dimensions
def test_check_notices_missing_importance_weights(family, dimension):
    assert worst_z(renormalised, kernel_of(family, dimension), dimension, MANY) > NOTICED


@pytest.mark.parametrize("family", [Matern12, Matern32, Matern52], ids=lambda family: family.name)
def test_check_notices_the_gaussian_law_under_another_kernel(family):
    def draw(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
        return named("iid")(Gaussian(1.0), pairs, dimension, rng)

    assert worst_z(draw, kernel_of(family, 3), 3, MANY) > NOTICED


# -------------------- the modified density, both regions in play

HALF_WIDTH, LOG_HEIGHT, LOG_N = 1.3, math.log(0.2), math.log(12.0)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_modified_density_is_sampled_as_stated(dimension):
    count = 30_000
    omega, log_q = sample_modified_density(
        count, dimension, HALF_WIDTH, LOG_HEIGHT, LOG_N, np.random.default_rng(dimension)
    )
    outside = (omega.abs() > HALF_WIDTH).any(1)
    assert 0.1 < float(outside.double().mean()) < 0.9  # both regions have mass
    log_p = Gaussian(1.0).spectral_log_density(omega)
    weights = (log_p - log_q).exp()
    shift = random_inputs(3, 4, dimension)
    truth = Gaussian(1.0)(shift, torch.zeros(1, dimension, dtype=torch.float64))[:, 0]
    for values, expected in [
        (weights, 1.0),
        (weights * ~outside, math.erf(HALF_WIDTH / math.sqrt(2.0)) ** dimension),  # mass of p in the box
        *[(weights * torch.cos(omega @ t), float(k)) for t, k in zip(shift, truth, strict=True)],
    ]:
        mean, error = standard_errors(values.tolist())
        assert abs(mean - expected) < LIMIT * error


@pytest.mark.parametrize("dimension", [1, 2])
def test_modified_density_is_normalised(dimension):
    """q by its formula, normalised by a fine midpoint rule, against the sampler's own numbers."""
    omega, log_q = sample_modified_density(2000, dimension, HALF_WIDTH, LOG_HEIGHT, LOG_N, np.random.default_rng(0))

    def unnormalised(points: torch.Tensor) -> torch.Tensor:
        g1 = torch.exp(-0.5 * points.square()) / math.sqrt(2.0 * math.pi) * points.abs().clamp_min(1.0)
        in_box = (points.abs() <= HALF_WIDTH).all(1)
        return torch.where(in_box, torch.full_like(g1[:, 0], math.exp(LOG_HEIGHT) + 1.0), math.exp(LOG_N) * g1.prod(1))

    step = 0.005 if dimension == 1 else 0.02
    axis = torch.arange(-9.1 + step / 2.0, 9.1, step, dtype=torch.float64)  # cells end at the edges of the box
    grid = torch.cartesian_prod(*[axis] * dimension).reshape(-1, dimension)
    mass = float(unnormalised(grid).sum()) * step**dimension
    torch.testing.assert_close(log_q.exp(), unnormalised(omega) / mass, rtol=2e-4, atol=0.0)


# -------------------- arguments and seeds


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_design_is_a_function_of_its_seed(sampling):
    kernel = kernel_of(Gaussian, 2)
    first, again, other = (named(sampling)(kernel, 10, 2, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert torch.equal(first.frequencies, again.frequencies)
    assert torch.equal(first.weights, again.weights)
    assert not torch.equal(first.frequencies, other.frequencies)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_any_number_of_pairs(sampling, pairs):
    design = named(sampling)(kernel_of(Gaussian, 2), pairs, 2, np.random.default_rng(0))
    assert design.frequencies.shape == (pairs, 2)
    assert design.weights.shape == (pairs,)
    assert bool((design.weights >= 0.0).all())
    assert bool(torch.isfinite(design.frequencies).all())


@pytest.mark.parametrize("family", [Matern12, Matern32, Matern52], ids=lambda family: family.name)
def test_modified_is_refused_for_other_kernels(family):
    with pytest.raises(
        InvalidInputError,
        match="sampling='modified' is defined for the gaussian kernel only; use 'widened' or 'leverage'",
    ):
        named("modified")(family(1.0), 4, 1, np.random.default_rng(0))


@pytest.mark.parametrize("sampling", ["leverage", "modified"])
def test_data_dependent_samplings_ask_for_data(sampling):
    with pytest.raises(InvalidInputError, match=f"sampling='{sampling}' depends on the data"):
        spectral_design(sampling, Gaussian(1.0), 4, 1, np.random.default_rng(0))


def test_unknown_sampling_names_the_choices():
    with pytest.raises(
        InvalidInputError,
        match="unknown sampling 'halton'; choose one of iid, orthogonal, sobol, widened, leverage, modified",
    ):
        spectral_design("halton", Gaussian(1.0), 4, 1, np.random.default_rng(0))
