"""Semi-stochastic asynchronous steps: the network sees batches and a stale kernel matrix, its head all rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from test_stochastic import HEADS, ROWS, X, Y, dense_negative_evidence, flat, gradients, joint_model

from certgp.data import Chunk, ChunkSource
from certgp.gp import Statistics, evidence_gradient
from certgp.training.checkpoint import Checkpoint
from certgp.training.mini_batch.descent import SemiStochastic
from certgp.training.mini_batch.evidence import EvidenceTask, JointModel
from certgp.training.mini_batch.steps import MinibatchSettings, train_minibatches
from helpers import relative_error

RECIPE = MinibatchSettings(
    epochs=6,
    batch_size=20,
    learning_rate=1e-2,
    shrinkage=0.0,
    average_decay=0.0,
    constant_rate=True,
    one_pass=True,
    refresh_every=1,
    head_steps=2,
)
every_head = pytest.mark.parametrize("head", HEADS)


def task_of(module: JointModel) -> EvidenceTask:
    options = {"objective": "marginal", "variance": "lowrank", "descent": SemiStochastic()}
    return EvidenceTask(module, ChunkSource(Chunk(X, Y)), None, **options)


@every_head
def test_a_fresh_step_is_the_full_gradient_of_the_network_and_leaves_the_head_alone(head):
    module = joint_model(head).train()
    other = copy.deepcopy(module)
    task = task_of(module)
    task.refresh([np.arange(ROWS)])
    module.train()
    value = task.step(0)
    dense = dense_negative_evidence(other, "marginal")
    dense.backward()
    assert value == pytest.approx(float(dense.detach()), rel=1e-10)
    found = gradients(module)
    expected = {name: tensor for name, tensor in gradients(other).items() if "network" in name or "transform" in name}
    assert set(found) == set(expected)
    assert relative_error(flat(found), flat(expected)) < 1e-8


def test_the_kernel_matrix_stays_as_it_was_until_the_next_refresh():
    """The gradient of a batch at new weights: < 2 Phi_c G_A + y_c G_b', dPhi_c > with the cotangents of old ones."""
    module = joint_model("fourier").eval()
    task = task_of(module)
    chunks = np.array_split(np.arange(ROWS), 4)
    task.refresh(chunks)
    with torch.no_grad():
        before = Statistics.of(module.model(X), Y)
        for p in module.network.parameters():
            p.add_(0.05)
        after = Statistics.of(module.model(X), Y)
    task.step(1)  # the first one since the refresh, at other weights than those of the refresh

    def by_hand(stats: Statistics) -> np.ndarray:
        g, rows = evidence_gradient(stats, *module.variances, "marginal"), chunks[1]
        other = copy.deepcopy(module)
        other.zero_grad()
        phi = other.model(X[rows])
        cotangent = 2.0 * phi.detach() @ g.by_gram + torch.outer(Y[rows], g.by_projection)
        (phi * cotangent / len(rows)).sum().backward()
        return flat({name: t for name, t in gradients(other).items() if "features" not in name})

    found = flat(gradients(module))
    assert relative_error(found, by_hand(before)) < 1e-10
    assert relative_error(found, by_hand(after)) > 1e-3
    module.zero_grad()
    task.refresh(chunks)  # also the outputs' moments
    task.step(1)
    with torch.no_grad():
        fresh = Statistics.of(module.model(X), Y)
    assert relative_error(flat(gradients(module)), by_hand(fresh)) < 1e-10


def test_an_epoch_is_one_pass_and_the_head_moves_before_it():
    module = joint_model("mercer")
    task, seen = task_of(module), []
    step, step_of_head = task.step, task.step_of_head
    task.step = lambda index: seen.append(index) or step(index)
    task.step_of_head = lambda: seen.append("head") or step_of_head()
    outcome = train_minibatches(task, RECIPE, seed=0)
    epochs = [seen[i : i + 5] for i in range(0, len(seen), 5)]
    assert len(epochs) == 6
    assert all(epoch[:2] == ["head", "head"] and sorted(epoch[2:]) == [0, 1, 2] for epoch in epochs)
    assert outcome.history.values[-1] < outcome.history.values[0]
    assert RECIPE.rows_per_step(10) == 10


def test_a_wild_step_moves_the_signal_variance_not_the_noise():
    """Where f is nearly linear the signal variance grows without end; the noise is what the rows determine."""
    module = joint_model("mercer")
    with torch.no_grad():
        module.log_signal_variance.fill_(30.0)
    task_of(module).constrain()
    assert module.variances[1] == pytest.approx(0.1)
    assert module.variances[1] / module.variances[0] == pytest.approx(1e-4)


def test_a_run_that_was_interrupted_ends_at_the_same_weights(tmp_path):
    def run(checkpoint=None):
        module = joint_model("fourier")
        train_minibatches(task_of(module), RECIPE, seed=3, checkpoint=checkpoint)
        return torch.cat([p.detach().ravel() for p in module.parameters()])

    class Killed(Exception):
        pass

    def kill(record):
        if record.iteration == 4:
            raise Killed

    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", "a fit")
    with pytest.raises(Killed):
        train_minibatches(task_of(joint_model("fourier")), RECIPE, seed=3, callbacks=[kill], checkpoint=checkpoint)
    assert checkpoint.path.exists()
    assert torch.equal(run(checkpoint), run())
