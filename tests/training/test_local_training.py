"""How local GPs learn: noise that rare contradictions decide, metrics that held-out rows choose."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

import certgp
from certgp import LocalGP
from certgp.data import Chunk
from certgp.errors import InvalidInputError
from certgp.features import NystromMap
from certgp.gp import FullScaleProcess, LocalProcess
from certgp.kernels import Gaussian, Linear, Matern32
from certgp.training.local import (
    FullScaleObjective,
    LinearMetric,
    LocalObjective,
    LowRankPart,
    ScaledMetric,
    SignalPrior,
    fit_noise,
    pick_earlier,
    pick_targets,
    profiled_loss,
    row_losses,
)
from certgp.training.parameters import ParameterVector
from certgp.training.recipes import local_rounds

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 3))
Y = np.sin(2.0 * X[:, 0] + X[:, 1]) + 0.1 * rng.standard_normal(400)
ROWS = Chunk(torch.from_numpy(X), torch.from_numpy(Y))


def metrics():
    ard = ScaledMetric(Matern32([0.8, 1.0, 3.0], 1.3), 3, 0.05)
    yield ard
    yield LinearMetric(Matern32([0.8, 1.0, 3.0], 1.3), torch.tensor([0.8, 1.0, 3.0], dtype=torch.float64), 3, 0.05)
    yield ScaledMetric(Gaussian([0.8, 1.0, 3.0]) + Linear(columns=[2]), 3, 0.05)


@pytest.mark.parametrize("prior", [None, SignalPrior(-2.0, 0.7)], ids=["no prior", "prior"])
@pytest.mark.parametrize("metric", list(metrics()), ids=["ard", "linear", "sum"])
def test_the_gradient_of_the_objective(metric, prior):
    data = pick_targets(metric, ROWS, np.arange(0, 400, 9), 12)
    objective = LocalObjective(metric, data, prior)
    start = objective.start()
    value, gradient = objective.evaluate(start)
    of_prior = 0.0 if prior is None else 0.5 * ((np.log(metric.signal) + 2.0) / 0.7) ** 2 / len(data.targets)
    assert value == pytest.approx(row_losses(metric, data).mean() + of_prior, rel=1e-10)
    for j in range(len(start)):
        step = 1e-5 * np.eye(len(start))[j]
        slope = (objective.evaluate(start + step)[0] - objective.evaluate(start - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("metric", list(metrics()), ids=["ard", "linear", "sum"])
def test_the_gradient_of_the_evidence_of_low_rank_plus_local(metric):
    targets = np.sort(np.random.default_rng(1).choice(400, 40, replace=False))
    rows = Chunk(ROWS.X, ROWS.y, torch.linspace(0.2, 3.0, 400, dtype=torch.float64))
    objective = FullScaleObjective(metric, pick_earlier(metric, rows, targets, 8), LowRankPart(ROWS.X[:7], 400))
    start = objective.start()
    _, gradient = objective.evaluate(start)
    for j in range(len(start)):
        step = np.zeros(len(start))
        step[j] = 1e-5
        slope = (objective.evaluate(start + step)[0] - objective.evaluate(start - step)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-8)
    objective.move_to(start)
    value, signal = objective.profiled(metric.ratio)
    metric.set_variances(signal, metric.ratio)
    assert value == pytest.approx(objective.evaluate(objective.start())[0], rel=1e-10)


def test_of_all_rows_the_objective_is_the_evidence_of_the_process():
    metric = next(metrics())
    objective = FullScaleObjective(metric, pick_earlier(metric, ROWS, np.arange(400), 8), LowRankPart(ROWS.X[:7], 400))
    transform, kernel = metric.result()
    process = FullScaleProcess(
        LocalProcess(transform, kernel, ROWS.X, ROWS.y, metric.signal * metric.ratio, 8, 8),
        NystromMap(kernel.with_signal_variance(1.0), ROWS.X[:7]),
    )
    assert -400 * objective.evaluate(objective.start())[0] == pytest.approx(process.log_evidence(), rel=1e-9)


def test_a_linear_map_starts_at_the_length_scales():
    ard, linear, _ = metrics()
    for metric in (ard, linear):
        targets = pick_targets(metric, ROWS, np.arange(30), 10)
    np.testing.assert_allclose(row_losses(ard, targets), row_losses(linear, targets), rtol=1e-10)
    transform, kernel = linear.result()
    before, after = ard.result()[1], kernel
    points = transform(ROWS.X)
    np.testing.assert_allclose(after(points, points), before(ROWS.X, ROWS.X), atol=1e-12)


@pytest.mark.parametrize("prior", [None, SignalPrior(-2.0, 0.1)], ids=["no prior", "prior"])
def test_the_noise_step_finds_the_best_variances(prior):
    metric = ScaledMetric(Matern32([0.8, 1.0, 3.0], 1.0), 3, 1e-6)
    data = pick_targets(metric, ROWS, np.arange(400), 20)
    reached = fit_noise(metric, partial(profiled_loss, metric, data, prior=prior))
    objective = LocalObjective(metric, data, prior)
    value, gradient = objective.evaluate(objective.start())
    assert reached == pytest.approx(value, rel=1e-10)
    names = [name for name, _ in ParameterVector(metric).named]
    assert abs(gradient[names.index("log_signal")]) < 1e-8
    assert abs(gradient[names.index("log_ratio")]) < 5e-3


@pytest.mark.parametrize("scatter", [1.0, 1e-6, 1e8])
def test_the_prior_of_the_signal_variance_is_that_of_the_targets_whatever_their_unit(scatter):
    prior = SignalPrior.of(torch.from_numpy(Y * np.sqrt(scatter / np.mean(Y**2))))
    assert prior.centre == pytest.approx(np.log(scatter))
    for mean_square, n in ((scatter, 10), (1e4 * scatter, 10), (1e-4 * scatter, 10), (1e4 * scatter, 10**6)):
        best = prior.best_log_signal(mean_square, n)
        near = best + np.linspace(-0.1, 0.1, 5)
        losses = [0.5 * n * (at + mean_square * np.exp(-at)) + prior.loss(at)[0] for at in near]
        assert int(np.argmin(losses)) == 2
    assert best == pytest.approx(np.log(mean_square), abs=1e-4)  # many rows decide for themselves


def test_few_rows_do_not_learn_a_signal_variance_of_thousands():
    """A parabola of three columns: length-scales and signal variance grow together, without a prior to 64,000."""
    some = np.random.default_rng(5)
    inputs = some.standard_normal((150, 3))
    y = (inputs @ [1.0, 0.5, 0.2]) ** 2 + inputs[:, 0] + 0.05 * some.standard_normal(150)
    model = LocalGP(kernel="matern52", metric="ard", noise="constant", random_state=0).fit(inputs, y)
    assert 1.0 < float(model.kernel_.signal_variance) / np.var(y) < 100.0


@pytest.mark.filterwarnings("ignore::certgp.errors.RepeatedRowsWarning")
def test_rare_contradictions_of_repeated_rows_do_not_collapse_the_noise():
    """Equal inputs with equal targets but for one pair in a hundred: a sample without such a pair sees no noise."""
    inputs = np.repeat(rng.standard_normal((1_500, 2)), 2, axis=0)
    target = np.sin(inputs[:, 0]) * inputs[:, 1]
    target[:30:2] += 1.0
    model = LocalGP(kernel="matern32", metric="ard", max_iter=60, random_state=0).fit(inputs, target)
    assert model.noise_variance_ > 1e-4
    held_out = rng.choice(3_000, 300, replace=False)
    assert model.nlpd(inputs[held_out], target[held_out]) < 1.0


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_a_target_that_is_a_function_of_one_column_is_found():
    inputs = rng.standard_normal((800, 4))
    target = np.exp(inputs[:, 2])
    model = LocalGP(max_iter=120, random_state=0).fit(inputs[:700], target[:700])
    assert model.score(inputs[700:], target[700:]) > 0.99
    assert np.isfinite(model.nlpd(inputs[700:], target[700:]))


def test_outliers_raise_the_noise_instead_of_breaking_the_fit():
    target = Y.copy()
    target[::40] += 50.0
    model = LocalGP(kernel="matern32", metric="ard", max_iter=45, random_state=0).fit(X, target)
    inside = np.abs(target - Y) < 1.0
    assert np.abs(model.predict(X[inside]) - Y[inside]).max() < 30.0
    assert model.noise_variance_ > 10.0


def test_a_map_is_kept_where_held_out_rows_gain_by_it():
    """y depends on x1 + x2 and x1 - x2 at very different scales, which no length-scales of x1 and x2 can tell."""
    inputs = rng.standard_normal((1_200, 2))
    turned = np.sin(8.0 * (inputs[:, 0] + inputs[:, 1])) + 0.05 * rng.standard_normal(1_200)
    model = LocalGP(kernel="matern32", random_state=0).fit(inputs[:1_000], turned[:1_000])
    plain = LocalGP(kernel="matern32", metric="ard", random_state=0).fit(inputs[:1_000], turned[:1_000])
    assert model.nlpd(inputs[1_000:], turned[1_000:]) < plain.nlpd(inputs[1_000:], turned[1_000:]) - 0.3
    assert [trial.name for trial in model.trials_] == ["ard", "linear"]


def test_metric_and_neighbours_are_checked():
    with pytest.raises(InvalidInputError, match="metric"):
        LocalGP(metric="euclid").fit(X, Y)
    with pytest.raises(InvalidInputError, match="metric='ard'"):
        LocalGP(kernel=Gaussian() + Linear(), metric="linear").fit(X, Y)
    with pytest.raises(InvalidInputError, match="neighbours"):
        LocalGP(neighbours=0).fit(X, Y)
    with pytest.raises(InvalidInputError, match="train_neighbours"):
        LocalGP(train_neighbours=2.5).fit(X, Y)


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_a_network_learns_an_embedding_and_is_saved(tmp_path, monkeypatch):
    """A target that varies the faster, the larger x is, which no length-scale suits everywhere."""
    monkeypatch.setattr(local_rounds, "_EPOCHS", 6)
    inputs = rng.uniform(-2.0, 2.0, (700, 1))
    chirp = np.sin(5.0 * np.exp(1.2 * inputs[:, 0])) + 0.05 * rng.standard_normal(700)
    options = {"kernel": "matern52", "max_iter": 60, "random_state": 0}
    model = LocalGP(metric="network", **options).fit(inputs[:600], chirp[:600])
    assert [trial.name for trial in model.trials_] == ["ard", "linear", "network"]
    scores = {trial.name: trial.score for trial in model.trials_}
    assert scores["network"] < min(scores["ard"], scores["linear"]) - 0.02
    model.save(tmp_path / "m", include_training_data=True)
    again = certgp.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(inputs[600:]), model.predict(inputs[600:]))
