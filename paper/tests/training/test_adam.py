"""Joint objective, coordinates and Adam: true derivatives, true constraints, and the steps that torch would take."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.errors import NotPositiveDefiniteError
from certgp.features import FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel, Statistics, elbo, log_evidence
from certgp.gp.evidence import trace_gap
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective, Objective
from certgp.transforms import Identity
from certgp_paper.training.adam import Adam, descend
from certgp_paper.training.coordinates import SoftplusCoordinates, TiedParameters, are_logarithms
from certgp_paper.training.joint import JointObjective
from helpers import central_differences, random_inputs, relative_error

X = random_inputs(0, 60, 2)
ROWS = Chunk(X, torch.sin(1.5 * X[:, 0]) + 0.3 * random_inputs(1, 60, 1)[:, 0])
KERNEL = Gaussian([0.9, 1.4])
MAPS = {
    "fourier": lambda: FourierMap(KERNEL, iid_design(KERNEL, 6, 2, np.random.default_rng(0))),
    "mercer": lambda: MercerMap(KERNEL, [1.0, 1.2], 10),
    "nystrom": lambda: NystromMap(KERNEL, X[:8]),
}


def joint(name: str, objective: str = "marginal") -> JointObjective:
    model = LowRankModel(Identity(2), MAPS[name]())
    return JointObjective(model, ChunkSource(ROWS), LocalEngine(17), objective, 1.3, 0.2)


@pytest.mark.parametrize(("name", "objective"), [("fourier", "marginal"), ("mercer", "marginal"), ("nystrom", "elbo")])
def test_joint_objective_has_the_value_and_gradient_of_the_evidence(name, objective):
    target = joint(name, objective)
    stats = Statistics.of(target.model(X).detach(), ROWS.y).scaled(1.3)
    expected = log_evidence(stats, 0.2) if objective == "marginal" else elbo(stats, trace_gap(stats), 0.2)
    value, gradient = target.evaluate(target.start())
    assert value == pytest.approx(-expected / 60, rel=1e-9)
    numeric = central_differences(lambda v: target.evaluate(v)[0], target.start(), 1e-3)
    assert relative_error(gradient, numeric) < 1e-6


def test_the_profiled_objective_is_the_joint_one_at_its_best_variances():
    target = joint("fourier")
    profiled = LowRankObjective(target.model, target.source, target.engine, "marginal")
    best = profiled.profile()
    at_best = np.concatenate([np.log([best.signal_variance, best.noise_variance]), profiled.start()])
    value, gradient = target.evaluate(at_best)
    assert value == pytest.approx(best.value / 60, rel=1e-9)
    assert np.abs(gradient[:2]).max() < 1e-8


def test_softplus_and_ties_are_changes_of_coordinates():
    inner = joint("fourier")
    labels = inner.labels()
    assert labels == ["log_signal_variance", "log_noise_variance", *["features.log_length_scale"] * 2]
    smooth = SoftplusCoordinates(inner, are_logarithms(labels))
    np.testing.assert_allclose(np.log1p(np.exp(smooth.start())), [1.3, 0.2, 0.9, 1.4])
    tied = TiedParameters(smooth, np.array([-1, 0, 1, 1]))
    start = np.array([-1.0, 0.4])
    _, gradient = tied.evaluate(start)
    assert relative_error(gradient, central_differences(lambda v: tied.evaluate(v)[0], start, 1e-3)) < 1e-6
    tied.move_to(start)
    length_scale = np.log1p(np.exp(0.4))
    np.testing.assert_allclose(np.exp(inner.start()), [1.3, np.log1p(np.exp(-1.0)), length_scale, length_scale])


def test_steps_are_those_of_torch():
    ours, theirs = np.array([1.0, -2.0, 0.5]), torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    adam, reference = Adam(3, 0.1), torch.optim.Adam([theirs], lr=0.1, eps=1e-7)
    for step in range(20):
        slope = np.array([1.0, 4.0, 9.0]) * ours + np.cos(step)
        ours = adam.step(ours, slope)
        theirs.grad = torch.from_numpy(slope)
        reference.step()
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12)


def test_descent_lowers_the_evidence_and_keeps_the_last_point():
    target = joint("mercer")
    start = target.evaluate(target.start())[0]
    outcome = descend(target, steps=40, learning_rate=0.05, rank=10)
    assert (outcome.n_iter, outcome.converged, len(outcome.history)) == (40, True, 40)
    assert target.evaluate(target.start())[0] < start - 0.1
    np.testing.assert_array_equal(target.start(), outcome.parameters)


class Cliff(Objective):
    """x downhill to the left, not defined below zero."""

    def __init__(self) -> None:
        self.x = np.array([0.25])

    def start(self):
        return self.x

    def bounds(self):
        return [(-np.inf, np.inf)]

    def move_to(self, values):
        self.x = values

    def evaluate(self, values):
        if values[0] < 0:
            raise NotPositiveDefiniteError("beyond the edge")
        return float(values[0]), np.ones(1)


def test_a_step_that_cannot_be_evaluated_is_taken_back_and_named():
    target = Cliff()
    outcome = descend(target, steps=10, learning_rate=0.1, rank=1)
    assert not outcome.converged
    assert "beyond the edge" in outcome.reason
    assert "learning rate" in outcome.reason
    assert target.x[0] == pytest.approx(0.05, abs=1e-6)
    assert outcome.n_iter == 3
