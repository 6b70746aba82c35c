"""The mini-batch loop: schedule, averaging, best epoch, callbacks, determinism, checkpoints and failure."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.errors import CheckpointError
from certgp.training.checkpoint import Checkpoint
from certgp.training.mini_batch.squared_error import Regression, SquaredErrorTask
from certgp.training.mini_batch.steps import MinibatchSettings, rate_factor, train_minibatches
from certgp.transforms import TanhNetwork
from helpers import random_inputs

ROWS = 120
X = random_inputs(0, ROWS, 3)
Y = torch.sin(2.0 * X[:, 0]) + 0.1 * random_inputs(1, ROWS, 1)[:, 0]
QUICK = MinibatchSettings(epochs=6, batch_size=40, learning_rate=1e-2)


def task(held_out: int = 30, dropout: float = 0.0) -> SquaredErrorTask:
    generator = torch.Generator().manual_seed(0)
    network = torch.nn.Sequential(TanhNetwork([3, 8, 8], generator), torch.nn.Dropout(dropout)).double()
    module = Regression(network, 8, generator)
    validation = ChunkSource(Chunk(X[:held_out], Y[:held_out])) if held_out else None
    return SquaredErrorTask(module, ChunkSource(Chunk(X[held_out:], Y[held_out:])), validation)


def weights(done: SquaredErrorTask) -> torch.Tensor:
    return torch.cat([p.detach().ravel() for p in done.module.parameters()])


def test_training_lowers_the_error():
    fitted = task()
    before = fitted.validate(fitted.module)
    outcome = train_minibatches(fitted, QUICK, seed=0)
    assert fitted.validate(fitted.module) == pytest.approx(outcome.value, rel=1e-9)  # the best weights are in place
    assert outcome.value < 0.5 * before
    assert outcome.converged
    assert len(outcome.history) == outcome.n_iter == 6
    assert [i.validation is not None for i in outcome.history.iterations] == [False, True] * 3
    assert not fitted.module.training


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_seed_decides_everything(dropout):
    """Also what modules draw from torch's global generator, which is left alone."""
    runs, settings = [], QUICK
    for noise, seed in ((1, 5), (2, 5), (3, 6)):
        torch.manual_seed(noise)
        state = torch.random.get_rng_state()
        fitted = task(dropout=dropout)
        train_minibatches(fitted, settings, seed=seed)
        assert torch.equal(torch.random.get_rng_state(), state)
        runs.append(weights(fitted))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_the_best_epoch_is_kept_not_the_last():
    fitted = task()
    outcome = train_minibatches(fitted, MinibatchSettings(epochs=8, learning_rate=0.3, validate_every=1), seed=0)
    scores = [i.validation for i in outcome.history.iterations]
    assert outcome.value == min(scores)
    assert f"epoch {1 + int(np.argmin(scores))} was the best" in outcome.reason
    assert fitted.validate(fitted.module) == pytest.approx(min(scores), rel=1e-9)


def test_without_held_out_rows_the_last_epoch_counts():
    fitted = task(held_out=0)
    outcome = train_minibatches(fitted, QUICK, seed=0)
    assert all(i.validation is None for i in outcome.history.iterations)
    assert outcome.value == outcome.history.values[-1]


def test_patience_stops_a_run_that_gets_no_better():
    settings = MinibatchSettings(epochs=60, learning_rate=0.3, validate_every=1, patience=2)
    outcome = train_minibatches(task(), settings, seed=0)
    assert outcome.n_iter < 60
    assert "no better epoch than" in outcome.reason
    assert outcome.converged


def test_callbacks_see_every_epoch_and_can_stop():
    seen = []

    def stop_at_four(record):
        seen.append(record)
        return record.iteration == 4

    outcome = train_minibatches(task(), QUICK, seed=0, callbacks=[stop_at_four])
    assert [record.iteration for record in seen] == [1, 2, 3, 4]
    assert outcome.stopped
    assert not outcome.converged
    assert all(record.gradient_norm > 0.0 for record in seen)
    assert np.all(np.diff([record.seconds for record in seen]) > 0.0)


def test_a_callback_may_stop_before_the_first_validation():
    fitted = task()
    start = weights(fitted)
    outcome = train_minibatches(fitted, QUICK, seed=0, callbacks=[lambda record: True])
    assert outcome.stopped
    assert outcome.n_iter == 1
    assert not torch.equal(weights(fitted), start)


def test_a_run_that_leaves_the_finite_numbers_says_so_and_keeps_the_best():
    fitted = task()
    outcome = train_minibatches(fitted, MinibatchSettings(epochs=10, learning_rate=1e200, shrinkage=0.0), seed=0)
    assert not outcome.converged
    assert "lower learning_rate" in outcome.reason
    assert bool(torch.isfinite(weights(fitted)).all())


def test_schedule_warms_up_and_ends_at_a_hundredth():
    factors = [rate_factor(step, 1000) for step in range(1000)]
    assert factors[0] == pytest.approx(0.01)
    assert max(factors) == 1.0
    assert int(np.argmax(factors)) in (99, 100)
    assert factors[-1] == pytest.approx(0.01, abs=1e-4)
    assert np.all(np.diff(factors[100:]) < 0.0)
    assert np.mean(factors) == pytest.approx(0.5, abs=0.02)  # in which the weight decay is expressed


def test_weights_that_no_gradient_holds_shrink_by_the_factor_promised():
    """Targets of zero through a dead readout: only weight decay moves the first layer."""
    fitted = task(held_out=0)
    with torch.no_grad():
        fitted.module.readout.zero_()
    fitted.rows = ChunkSource(Chunk(X, torch.zeros(ROWS, dtype=torch.float64)))
    first = fitted.module.network[0][0]
    start = first.weight.detach().clone()
    settings = MinibatchSettings(epochs=10, shrinkage=0.7, average_decay=0.0)
    train_minibatches(fitted, settings, seed=0)
    torch.testing.assert_close(first.weight.detach(), math.exp(-0.7) * start, rtol=0.05, atol=0)


def test_few_rows_get_as_many_steps_as_many_rows():
    fitted, steps = task(), []
    step = fitted.step
    fitted.step = lambda index: steps.append(index) or step(index)
    train_minibatches(fitted, MinibatchSettings(epochs=1), seed=0)
    assert len(steps) >= 50
    assert np.ptp(np.bincount(steps)) == 0  # every chunk equally often
    assert MinibatchSettings().rows_per_step(10**6) == 250
    assert MinibatchSettings().rows_per_step(1000) == 100


# -------------------- checkpoints


def interrupted(record):
    if record.iteration == 4:
        raise KeyboardInterrupt


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path, dropout):
    whole = task(dropout=dropout)
    expected = train_minibatches(whole, QUICK, seed=3)
    checkpoint = Checkpoint(tmp_path / "run", "same")
    with pytest.raises(KeyboardInterrupt):
        train_minibatches(task(dropout=dropout), QUICK, seed=3, callbacks=[interrupted], checkpoint=checkpoint)
    seen, again = [], task(dropout=dropout)
    outcome = train_minibatches(
        again, QUICK, seed=3, callbacks=[lambda r: seen.append(r.iteration)], checkpoint=checkpoint
    )
    assert seen == [3, 4, 5, 6]  # the checkpoint is from after epoch 2
    assert torch.equal(weights(again), weights(whole))
    assert outcome.value == expected.value
    assert [i.value for i in outcome.history.iterations] == [i.value for i in expected.history.iterations]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    train_minibatches(task(), QUICK, seed=3, checkpoint=Checkpoint(tmp_path / "run", "mine"))
    with pytest.raises(CheckpointError, match=r"checkpoint .* belongs to another fit .* delete it"):
        train_minibatches(task(), QUICK, seed=3, checkpoint=Checkpoint(tmp_path / "run", "yours"))
    (tmp_path / "run").write_bytes(b"noise")
    with pytest.raises(CheckpointError, match="cannot be read"):
        train_minibatches(task(), QUICK, seed=3, checkpoint=Checkpoint(tmp_path / "run", "mine"))


def test_a_removed_checkpoint_is_gone(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run", "mine")
    checkpoint.write({"a": torch.ones(2)}, {"b": 1})
    tensors, values = checkpoint.read()
    assert torch.equal(tensors["a"], torch.ones(2))
    assert values == {"b": 1}
    checkpoint.remove()
    checkpoint.remove()
    assert checkpoint.read() is None
