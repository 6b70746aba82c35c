"""Hyper-parameters from subsets that grow end where those of all rows do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp import FourierGP, MercerGP
from certgp.data import Chunk, ChunkSource, RowSource, StandardisedRows, Standardiser, as_rows
from certgp.engines import LocalEngine
from certgp.features import MercerMap
from certgp.kernels import Gaussian
from certgp.training.full_batch import growth
from certgp.training.full_batch.objective import LowRankObjective, Objective, ShiftedObjective
from certgp.training.recipes import staged
from helpers import identity_model, random_inputs, random_target

N = 12_000


def problem(rows: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (rows, 2))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.standard_normal(rows)


@pytest.fixture
def small(monkeypatch):
    """Subsets from 600 rows on, of more than 1,000."""
    monkeypatch.setattr(growth, "FIRST_ROWS", 600)
    monkeypatch.setattr(growth, "_HELD_OUT", 500)
    monkeypatch.setattr(growth, "_LARGEST_SHARE", 2)
    monkeypatch.setattr(staged, "MOST_ROWS", 1_000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cls", [MercerGP, FourierGP])
def test_the_optimum_of_growing_subsets_is_that_of_all_rows(cls):
    X, y = problem()
    grown = cls(20, random_state=0, noise="constant").fit(X, y)
    whole = cls(20, random_state=0, noise="constant", growing=False).fit(X, y)
    stages = grown.history_.stages
    assert {stage.rows for stage in whole.history_.stages} <= {4_000, N}
    seen = [stage.rows for stage in stages if stage.rows != 4_000]  # those of the trials
    assert seen[:2] == [600, 2_400]
    assert seen[-1] == N or seen[-2] == N  # the last step may have promised too little
    assert sum(stage.iterations for stage in stages if stage.rows == N) <= 4
    assert sum(stage.iterations for stage in stages) == grown.n_iter_
    assert grown.n_rows_ == N
    assert grown.log_marginal_likelihood_ / N > whole.log_marginal_likelihood_ / N - 2e-3
    assert "stages of" in grown.stop_reason_


@pytest.mark.usefixtures("small")
def test_a_callback_stops_it_and_hears_of_all_rows():
    X, y = problem(5_000)
    records = []
    MercerGP(10, random_state=0, max_iter=30, callbacks=[records.append]).fit(X, y)
    assert {record.rows for record in records} >= {600, 5_000}
    stopped = MercerGP(10, random_state=0, max_iter=30, callbacks=[lambda record: record.rows == 5_000]).fit(X, y)
    assert stopped.stop_reason_ == "a callback stopped the fit"
    assert stopped.history_[-1].rows == 5_000
    assert not stopped.converged_


@pytest.mark.usefixtures("small")
def test_a_checkpoint_goes_on_to_the_same_model(tmp_path):
    X, y = problem(5_000)
    plain = MercerGP(10, random_state=0, max_iter=30).fit(X, y)

    def interrupt(record):
        if record.rows == 5_000:
            raise KeyboardInterrupt

    options = {"random_state": 0, "max_iter": 30, "checkpoint": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt):
        MercerGP(10, callbacks=[interrupt], **options).fit(X, y)
    resumed = MercerGP(10, **options).fit(X, y)
    assert resumed.log_marginal_likelihood_ == plain.log_marginal_likelihood_


@pytest.mark.usefixtures("small")
def test_subsets_are_nested_and_held_out_rows_are_in_none():
    X, y = problem(5_000)
    X[:, 0] = np.arange(5_000)
    source: RowSource = StandardisedRows(as_rows(X, y), Standardiser.identity(2))
    subsets = growth.Growth(source, source.take(slice(1)).X.dtype, np.random.default_rng(0))
    first = set(subsets.rows.take(slice(None)).X[:, 0].tolist())
    held_out = set(subsets._held_out.X[:, 0].tolist())
    assert isinstance(subsets.rows, ChunkSource)
    assert (len(first), len(held_out)) == (600, 500)
    assert subsets._grow()
    second = set(subsets.rows.take(slice(None)).X[:, 0].tolist())
    assert len(second) == 2_400
    assert first < second
    assert not second & held_out
    assert not subsets._grow()


@pytest.mark.parametrize("objective", ["marginal", "elbo"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_subset_that_stands_for_more_rows_has_the_objective_of_as_many_copies(objective, outputs):
    X, y = random_inputs(0, 50, 2), random_target(random_inputs(0, 50, 2), 1)
    y = y if outputs == 1 else torch.stack([y, torch.where(y > 0, y.cos(), torch.nan)], 1)
    weight = torch.rand(50, dtype=torch.float64) + 0.5
    some, copies = ChunkSource(Chunk(X, y, weight)), ChunkSource(Chunk.join([Chunk(X, y, weight)] * 3))
    some.stands_for = 150
    found = []
    for source in (some, copies):
        model = identity_model(MercerMap(Gaussian([0.9, 1.1]), [1.0, 1.0], 12))
        target = LowRankObjective(model, source, LocalEngine(), objective)
        found.append(target.evaluate(target.start()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)


class Parabola(Objective):
    """(t - centre)' H (t - centre) / 2."""

    def __init__(self, centre: np.ndarray, curvature: np.ndarray) -> None:
        self.centre, self.curvature, self.values = centre, curvature, np.zeros(2)

    def start(self):
        return self.values

    def bounds(self):
        return [(-9.0, 9.0)] * 2

    def move_to(self, values):
        self.values = values

    def evaluate(self, values):
        self.move_to(values)
        slope = self.curvature @ (values - self.centre)
        return 0.5 * float(slope @ (values - self.centre)), slope


def test_the_surrogate_of_a_quadratic_with_the_same_curvature_has_the_optimum_of_all_rows():
    curvature = np.array([[3.0, 1.0], [1.0, 2.0]])
    some, everything = Parabola(np.array([1.0, -1.0]), curvature), Parabola(np.array([1.5, 0.5]), curvature)
    here = np.array([0.9, -0.8])
    shift = everything.evaluate(here)[1] - some.evaluate(here)[1]
    surrogate = ShiftedObjective(some, shift, here)
    _, slope = surrogate.evaluate(here)
    np.testing.assert_allclose(slope, everything.evaluate(here)[1])
    _, at_optimum = surrogate.evaluate(everything.centre)
    np.testing.assert_allclose(at_optimum, 0.0, atol=1e-14)
