"""Joint training: the step's gradient is the derivative of the evidence, by three independent ways."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.errors import InvalidInputError
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel, Statistics
from certgp.kernels import Gaussian, Linear, Matern32
from certgp.training import LowRankObjective
from certgp.training.mini_batch import evidence as stochastic
from certgp.training.mini_batch.evidence import EvidenceTask, JointModel, RunningStatistics, finish
from certgp.transforms import Network, TanhNetwork
from helpers import central_differences, random_inputs, relative_error

ROWS, COLUMNS, DIMENSION = 48, 3, 2
X = random_inputs(0, ROWS, COLUMNS)
Y = torch.sin(1.5 * X[:, 0]) + 0.5 * torch.cos(1.3 * X[:, 1]) + 0.2 * random_inputs(9, ROWS, 1)[:, 0]
HEADS = ("mercer", "fourier", "fourier-matern")


def features_of(head: str) -> FeatureMap:
    if head == "mercer":
        return MercerMap(Gaussian([0.9, 1.4]), [1.0, 1.0], 10)
    kernel = (Gaussian if head == "fourier" else Matern32)([0.9, 1.4])
    return FourierMap(kernel, iid_design(kernel, 6, DIMENSION, np.random.default_rng(2)))


def joint_model(head: str, signal: float = 0.8, noise: float = 0.1) -> JointModel:
    network = Network(TanhNetwork([COLUMNS, 7, DIMENSION], torch.Generator().manual_seed(3)), DIMENSION)
    module = JointModel(LowRankModel(network, features_of(head)), signal, noise)
    with torch.no_grad():
        module.network.measure(module.network.raw(X))
    return module


def test_a_network_refuses_a_kernel_whose_diagonal_varies():
    network = Network(TanhNetwork([COLUMNS, 7, DIMENSION], torch.Generator().manual_seed(3)), DIMENSION)
    features = NystromMap(Gaussian() + Linear(), random_inputs(1, 5, DIMENSION))
    with pytest.raises(InvalidInputError, match="a network takes a kernel whose k"):
        JointModel(LowRankModel(network, features), 1.0, 0.1)


def task_of(module: JointModel, objective: str = "marginal", **options) -> EvidenceTask:
    return EvidenceTask(module, ChunkSource(Chunk(X, Y)), None, objective=objective, variance="lowrank", **options)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def flat(named: dict[str, torch.Tensor]) -> np.ndarray:
    return np.concatenate([named[name].numpy().ravel() for name in sorted(named)])


def dense_negative_evidence(module: JointModel, objective: str) -> torch.Tensor:
    """-log N(y | 0, sf2 Phi Phi' + s2 I) / N through autograd on the full graph, Cholesky and all."""
    phi = module.model(X)
    signal, noise = module.log_signal_variance.exp(), module.log_noise_variance.exp()
    S = signal * phi @ phi.mT + noise * torch.eye(ROWS, dtype=torch.float64)
    value = -torch.distributions.MultivariateNormal(torch.zeros(ROWS, dtype=torch.float64), S).log_prob(Y)
    if objective == "elbo":
        value = value + signal * (ROWS - phi.square().sum()) / (2.0 * noise)
    return value / ROWS


every_head = pytest.mark.parametrize("head", HEADS)
every_objective = pytest.mark.parametrize("objective", ["marginal", "elbo"])


@every_head
@every_objective
def test_a_fresh_step_equals_autograd_on_the_full_graph(head, objective):
    """All parameters at once: network (through the batch's moments), length-scales, signal variance, noise."""
    module = joint_model(head).train()
    other = copy.deepcopy(module)
    task = task_of(module, objective)
    task.refresh([np.arange(ROWS)])
    module.train()
    value = task.step(0)
    dense = dense_negative_evidence(other, objective)
    dense.backward()
    assert value == pytest.approx(float(dense.detach()), rel=1e-10)
    found, expected = gradients(module), gradients(other)
    assert set(found) == set(expected)
    assert relative_error(flat(found), flat(expected)) < 1e-8


@every_head
@every_objective
def test_a_fresh_step_equals_the_two_pass_gradient(head, objective):
    """At the variances that the two-pass objective profiles out, whose own gradient then vanishes."""
    module = joint_model(head).train()
    target = LowRankObjective(module.model, ChunkSource(Chunk(X, Y)), LocalEngine(ROWS), objective)
    value, expected = target.evaluate(target.start())
    best = target.profile()
    module.set_variances(best.signal_variance, best.noise_variance)
    task = task_of(module, objective)
    task.refresh([np.arange(ROWS)])
    module.train()
    assert task.step(0) == pytest.approx(value, rel=1e-9)
    found = np.concatenate([p.grad.numpy().ravel() for p in target.parameters.tensors])
    assert relative_error(found, expected) < 1e-8
    assert abs(float(module.log_signal_variance.grad)) < 1e-8
    assert abs(float(module.log_noise_variance.grad)) < 1e-6  # as exact as the root that the profile finds


@every_head
def test_two_pass_gradient_of_a_network_equals_finite_differences(head):
    module = joint_model(head).train()
    target = LowRankObjective(module.model, ChunkSource(Chunk(X, Y)), LocalEngine(ROWS), "marginal")
    start = target.start()
    _, gradient = target.evaluate(start)
    numeric = central_differences(lambda values: target.evaluate(values)[0], start, 2e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-8)
    assert np.abs(gradient).max() > 1e-3


@every_head
@pytest.mark.parametrize("chunk_rows", [5, 17])
def test_two_passes_over_chunks_equal_one_chunk_with_measured_moments(head, chunk_rows):
    module = joint_model(head).eval()

    def evaluate(rows):
        target = LowRankObjective(module.model, ChunkSource(Chunk(X, Y)), LocalEngine(rows), "marginal")
        return target.evaluate(target.start())

    (whole, gradient), (value, found) = evaluate(ROWS), evaluate(chunk_rows)
    assert value == pytest.approx(whole, rel=1e-10)
    assert relative_error(found, gradient) < 1e-9


@every_head
def test_steps_over_all_chunks_add_up_to_the_full_gradient(head):
    """With nothing stale and moments held, the chunks' gradients are an exact split of the full one."""
    module = joint_model(head).eval()
    chunks = np.array_split(np.random.default_rng(0).permutation(ROWS), 5)
    whole, parts = task_of(module), task_of(module)
    whole.refresh([np.arange(ROWS)])
    module.zero_grad()
    whole.step(0)
    expected = gradients(module)
    parts.refresh(chunks)
    total = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    for index, chunk in enumerate(chunks):
        module.zero_grad()
        parts.step(index)
        for name, tensor in gradients(module).items():
            total[name] += tensor * len(chunk) / ROWS
    assert relative_error(flat(total), flat(expected)) < 1e-8


def test_running_statistics_follow_the_steps():
    """After every chunk's step at new weights, the running total is that of all rows at these weights."""
    module = joint_model("fourier").eval()
    task = task_of(module)
    task.refresh(np.array_split(np.arange(ROWS), 4))
    with torch.no_grad():
        for p in module.network.parameters():
            p.add_(0.05)
        exact = Statistics.of(module.model(X), Y)
    assert not task.statistics().total.close_to(exact)
    for index in range(4):
        task.step(index)
    assert task.statistics().total.close_to(exact, 1e-12)


def test_contributions_are_not_kept_where_they_would_be_large(monkeypatch):
    parts = [Statistics.of(random_inputs(i, 6, 3), Y[:6]) for i in range(4)]
    monkeypatch.setattr(stochastic, "_CONTRIBUTION_BYTES", 8 * 4 * 3 * 4 - 1)
    held = RunningStatistics(iter(parts), 4)
    before = held.total
    assert not held.follows
    monkeypatch.setattr(stochastic, "_CONTRIBUTION_BYTES", 8 * 4 * 3 * 4)
    running = RunningStatistics(iter(parts), 4)
    assert running.follows
    assert running.replace(0, parts[1]).close_to(parts[1] + parts[1] + parts[2] + parts[3], 1e-12)
    assert before.close_to(parts[0] + parts[1] + parts[2] + parts[3], 1e-12)


@every_head
@every_objective
def test_a_step_on_statistics_that_stay_equals_one_on_statistics_that_follow(head, objective, monkeypatch):
    """At the weights of the refresh both totals are the same."""
    found = []
    for room in (stochastic._CONTRIBUTION_BYTES, 0):
        monkeypatch.setattr(stochastic, "_CONTRIBUTION_BYTES", room)
        module = joint_model(head).eval()
        task = task_of(module, objective)
        task.refresh(np.array_split(np.arange(ROWS), 4))
        assert task.statistics().follows == (room > 0)
        found.append((task.step(1), flat(gradients(module))))
    (value, gradient), (other, others) = found
    assert value == pytest.approx(other, rel=1e-10)
    assert relative_error(gradient, others) < 1e-8


def test_constraints_hold_after_a_wild_step():
    module = joint_model("mercer")
    with torch.no_grad():
        module.features.log_length_scale.fill_(40.0)
        module.log_noise_variance.fill_(-90.0)
    task_of(module).constrain()
    assert float(module.features.log_length_scale.detach().max()) == 9.0
    assert module.variances[1] / module.variances[0] == pytest.approx(1e-4)


@every_head
@every_objective
def test_the_heads_own_step_equals_autograd_with_the_network_held(head, objective):
    module = joint_model(head).eval()
    other = copy.deepcopy(module)
    task = task_of(module, objective)
    task.refresh(np.array_split(np.random.default_rng(0).permutation(ROWS), 3))
    task.step_of_head()
    other.network.requires_grad_(False)
    dense_negative_evidence(other, objective).backward()
    found, expected = gradients(module), gradients(other)
    assert set(found) == set(expected)
    assert all(name.startswith(("model.features", "log_")) for name in found)
    assert relative_error(flat(found), flat(expected)) < 1e-8


def test_restoring_brings_back_an_index_set_too():
    module = joint_model("mercer")
    before, phi = module.snapshot(), module.model.eval()(X)
    with torch.no_grad():
        module.features.log_length_scale.copy_(torch.tensor([3.0, -1.0]))
    module.choose_indices()
    assert not torch.equal(module.features.indices, before["model.features.indices"])
    module.restore(before)
    assert torch.equal(module.model(X), phi)


@pytest.mark.parametrize("calibrate", [True, False])
def test_finish_conditions_on_all_rows_and_only_raises_the_noise(calibrate):
    module = joint_model("fourier")
    source, order = ChunkSource(Chunk(X, Y)), np.random.default_rng(1).permutation(ROWS)
    process = finish(
        module, source, order[12:], order[:12], objective="marginal", variance="lowrank", calibrate=calibrate
    )
    with torch.no_grad():
        assert process.statistics.close_to(Statistics.of(module.model(X), Y), 1e-12)
    assert process.noise_scale >= 1.0 if calibrate else process.noise_scale == 1.0
    assert not any(p.requires_grad for p in process.model.parameters())
