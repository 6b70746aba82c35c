"""Mercer features fitted to the inputs at hand: smaller trace gaps, still below the kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.errors import InvalidInputError
from certgp.features import (
    FourierMap,
    MercerFeatures,
    MercerMap,
    NystromMap,
    ResidualMap,
    data_mercer_map,
    mean_gap,
    residual_points,
)
from certgp.features.data_mercer import pick_by_column_norm, principal_directions_of, tune_input_scale
from certgp.features.spectral import iid_design
from certgp.gp import Statistics
from certgp.guarantees import gaussian_kl
from certgp.kernels import Gaussian

RNG = np.random.default_rng(0)
INPUTS = {
    "uniform": RNG.uniform(-1.7, 1.7, (400, 1)),
    "exponential": RNG.exponential(size=(400, 1)),
    "mixture": 0.4 * RNG.standard_normal((400, 3)) + RNG.integers(-1, 2, (400, 3)),
}


def kl(features, X, kernel, noise=0.1) -> float:
    with torch.no_grad():
        K, phi = kernel(X, X).numpy(), features(X).numpy()
    return gaussian_kl(K + noise * np.eye(len(X)), phi @ phi.T + noise * np.eye(len(X)))


@pytest.mark.parametrize("law", INPUTS)
def test_tuning_and_picking_lower_gap_and_divergence(law):
    X = torch.from_numpy(INPUTS[law])
    kernel, rank = Gaussian(np.full(X.shape[1], 0.5 if X.shape[1] == 1 else 1.0)), 15 if X.shape[1] == 1 else 60
    plain = MercerMap(kernel, X.std(0, correction=0), rank, centre=X.mean(0))
    tuned = data_mercer_map(kernel, X, rank)
    assert mean_gap(tuned, X) < 0.95 * mean_gap(plain, X)
    assert kl(tuned, X, kernel) < kl(plain, X, kernel)
    with torch.no_grad():
        lost = kernel(X, X) - tuned(X) @ tuned(X).mT
    assert float(torch.linalg.eigvalsh(lost)[0]) > -1e-10


def test_uniform_inputs_gain_orders_of_magnitude():
    """Theory 2 (b): a scale fitted to uniform inputs instead of their standard deviation."""
    X = torch.from_numpy(INPUTS["uniform"])
    kernel = Gaussian(0.5)
    plain = kl(MercerMap(kernel, X.std(0), 15), X, kernel)
    assert kl(MercerMap(kernel, tune_input_scale(kernel, X, 15), 15), X, kernel) < 0.02 * plain


def test_column_norms_order_the_features():
    X = torch.from_numpy(INPUTS["mixture"])
    features = MercerMap(Gaussian(np.ones(3)), np.ones(3), 20)
    before = mean_gap(features, X)
    pick_by_column_norm(features, X, 20)
    norms = features(X).detach().square().sum(0)
    assert (norms.diff() <= 1e-12).all()
    assert mean_gap(features, X) <= before


def test_principal_directions_beat_every_subset():
    """Theory 2 (c): the leading directions of a pool lose least trace of all features of that rank."""
    X = torch.from_numpy(INPUTS["uniform"])
    with torch.no_grad():
        phi = MercerMap(Gaussian(0.5), X.std(0), 40)(X)
    stats = Statistics.of(phi, torch.zeros(len(X), dtype=torch.float64))
    V = principal_directions_of(stats.A, 15)
    best = float(stats.mixed(V).A.diagonal().sum())
    assert best >= float(torch.sort(stats.A.diagonal(), descending=True).values[:15].sum())


def test_far_out_rows_are_taken_back_by_residual_points():
    bulk = RNG.standard_normal((300, 2))
    X = torch.from_numpy(np.concatenate([bulk, [[40.0, 0.0], [40.1, 0.0], [0.0, -60.0]]]))
    base = MercerMap(Gaussian(np.ones(2)), np.ones(2), 100)
    points = residual_points(base, X, 5, 0.5)
    assert len(points) == 2  # two of the three are neighbours
    completed = ResidualMap(base, points)
    assert completed.rank == 102
    assert len(X) * mean_gap(base, X) > 3.0
    assert len(X) * mean_gap(completed, X) < len(X) * mean_gap(base, X) - 2.9
    with torch.no_grad():
        lost = Gaussian(np.ones(2))(X, X) - completed(X) @ completed(X).mT
    assert float(torch.linalg.eigvalsh(lost)[0]) > -1e-10
    assert completed.leading(101).rank == 101
    assert completed.leading(50).rank == 50


def test_trimmed_gap_leaves_out_the_worst_rows():
    X = torch.from_numpy(np.concatenate([RNG.standard_normal((99, 1)), [[50.0]]]))
    features = MercerMap(Gaussian(1.0), [1.0], 30)
    assert mean_gap(features, X) > 0.009
    assert mean_gap(features, X, trim=0.01) < 1e-6


@pytest.mark.parametrize("kind", ["mercer", "nystrom", "fourier"])
def test_leading_features_are_the_columns_they_say(kind):
    X = torch.from_numpy(INPUTS["mixture"])
    kernel = Gaussian(np.ones(3))
    features = {
        "mercer": MercerMap(kernel, np.ones(3), 12),
        "nystrom": NystromMap(kernel, X[:12]),
        "fourier": FourierMap(kernel, iid_design(kernel, 6, 3, RNG)),
    }[kind]
    columns, factor = features.leading_columns(4)
    with torch.no_grad():
        expected = factor**0.5 * features(X)[:, columns]
        torch.testing.assert_close(features.leading(4)(X), expected, rtol=1e-10, atol=1e-12)


def test_transformer_offers_both_choices():
    X = INPUTS["uniform"]
    K = Gaussian(0.5)(torch.from_numpy(X), torch.from_numpy(X)).numpy()
    lost = {}
    for scale, index_set in ((1.0, "optimal"), ("tuned", "optimal"), ("tuned", "column_norm")):
        phi = MercerFeatures(0.5, scale, 15, index_set=index_set).fit(X).transform(X)
        assert np.linalg.eigvalsh(K - phi @ phi.T).min() > -1e-10
        lost[scale, index_set] = np.trace(K - phi @ phi.T)
    assert lost["tuned", "optimal"] < 0.1 * lost[1.0, "optimal"]
    assert lost["tuned", "column_norm"] <= lost["tuned", "optimal"] * (1 + 1e-9)
    with pytest.raises(InvalidInputError, match="'tuned', found 'guess'"):
        MercerFeatures(0.5, "guess").fit(X)
