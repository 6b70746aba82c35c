"""The optimiser: it finds minima inside its box, records what it did and says why it stopped."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.errors import NotPositiveDefiniteError
from certgp.features import MercerMap, NystromMap
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.training import ExactObjective, History, Iteration, LowRankObjective, Objective, minimise
from certgp.transforms import Identity
from helpers import random_inputs, random_target

CENTRE = np.array([1.0, -2.0, 3.0])


class Bowl(Objective):
    """A tilted quadratic of three numbers, with a box and, on request, a region where it cannot be evaluated."""

    def __init__(self, bounds=(-10.0, 10.0), wall: float = np.inf, failure=None) -> None:
        self.box, self.wall, self.failure = bounds, wall, failure
        self.current = np.zeros(3)
        self.calls = 0

    def start(self):
        return self.current

    def bounds(self):
        return [self.box] * 3

    def move_to(self, values):
        self.current = values.copy()

    def evaluate(self, values):
        self.calls += 1
        self.move_to(values)
        if np.abs(values).max() > self.wall:
            if self.failure is not None:
                raise self.failure
            return float("nan"), np.zeros(3)
        weights = np.array([1.0, 10.0, 100.0])
        return float(0.5 * weights @ (values - CENTRE) ** 2), weights * (values - CENTRE)


def run(objective, **options):
    return minimise(
        objective, **{"max_iter": 100, "rank": 7, "tolerance": 1e-14, "gradient_tolerance": 1e-8, **options}
    )


def test_finds_the_minimum_and_leaves_the_objective_there():
    bowl = Bowl()
    result = run(bowl)
    np.testing.assert_allclose(result.parameters, CENTRE, atol=1e-6)
    np.testing.assert_array_equal(bowl.current, result.parameters)
    np.testing.assert_allclose(result.value, 0.0, atol=1e-10)
    assert result.converged


def test_stays_inside_the_box():
    result = run(Bowl(bounds=(-1.5, 2.0)))
    np.testing.assert_allclose(result.parameters, np.clip(CENTRE, -1.5, 2.0), atol=1e-6)


def test_a_start_outside_the_box_is_clipped():
    bowl = Bowl(bounds=(2.0, 5.0))
    result = run(bowl)
    np.testing.assert_allclose(result.parameters, [2.0, 2.0, 3.0], atol=1e-6)


@pytest.mark.parametrize("failure", [None, NotPositiveDefiniteError("not here")])
def test_turns_back_from_points_that_cannot_be_evaluated(failure):
    """The first step along the gradient goes far beyond the wall; the line search must come back."""
    result = run(Bowl(wall=3.5, failure=failure))
    np.testing.assert_allclose(result.parameters, CENTRE, atol=1e-4)
    assert np.isfinite(result.history.values).all()
    assert result.history.values.max() < 1e9


def test_a_start_that_cannot_be_evaluated_is_no_success():
    """Every point is NaN: the optimiser must not report convergence."""
    assert not run(Bowl(wall=-1.0)).converged


def test_a_start_that_cannot_be_factorised_raises():
    with pytest.raises(NotPositiveDefiniteError, match="not here"):
        run(Bowl(wall=-1.0, failure=NotPositiveDefiniteError("not here")))


def test_history_has_one_record_per_iteration():
    bowl = Bowl()
    result = run(bowl, offset=4)
    history = result.history
    assert len(history) == result.n_iter > 1
    assert [i.iteration for i in history.iterations] == list(range(5, 5 + result.n_iter))
    assert (np.diff(history.values) <= 0.0).all()
    assert (np.diff(history.seconds) >= 0.0).all()
    assert {i.rank for i in history.iterations} == {7}
    assert all(np.isfinite(i.gradient_norm) for i in history.iterations)
    assert history.iterations[-1].gradient_norm < history.iterations[0].gradient_norm
    np.testing.assert_allclose(history.values[-1], result.value, atol=1e-12)


def test_histories_concatenate():
    first = History((Iteration(1, 2.0, 0.1, 0.5, 3),))
    second = History((Iteration(2, 1.0, 0.01, 0.7, 3),))
    assert (first + second).iterations == first.iterations + second.iterations
    np.testing.assert_array_equal((first + second).values, [2.0, 1.0])
    np.testing.assert_array_equal((first + second).seconds, [0.5, 0.7])
    assert len(History()) == 0


def test_histories_are_sequences_of_iterations():
    history = History(tuple(Iteration(i, 2.0 - i, 0.1, 0.5, 3) for i in range(3)))
    assert (history[0].iteration, history[-1].iteration) == (0, 2)
    assert [record.value for record in history] == [2.0, 1.0, 0.0]
    assert history[1:].values.tolist() == [1.0, 0.0]


def test_a_callback_stops_the_fit_and_all_callbacks_see_every_record():
    seen: list[int] = []
    result = run(Bowl(), callbacks=[lambda i: i.iteration >= 2, lambda i: seen.append(i.iteration)])
    assert seen == [1, 2]
    assert not result.converged
    assert result.reason == "a callback stopped the fit"
    assert len(result.history) == 2


def test_running_out_of_iterations_is_said():
    result = run(Bowl(), max_iter=1)
    assert not result.converged
    assert "max_iter=1 iterations were used up" in result.reason


class Steps(Bowl):
    """The bowl with values in steps: where the bowl is flatter than a step, a line search finds nothing better.

    Its gradient may come with an error, so that no direction is one of descent.
    """

    def __init__(self, step: float, wrong: float = 0.0) -> None:
        super().__init__()
        self.step, self.wrong = step, wrong

    def evaluate(self, values):
        value, gradient = super().evaluate(values)
        return float(np.ceil(value / self.step) * self.step), gradient * (1.0 - self.wrong)


def test_flat_to_rounding_is_an_optimum_and_a_wrong_gradient_is_not():
    flat = run(Steps(1e-8))
    assert flat.converged
    assert "the objective is flat here to rounding" in flat.reason
    np.testing.assert_allclose(flat.parameters, CENTRE, atol=1e-3)
    rough = run(Steps(1e-8, wrong=2.0))
    assert not rough.converged
    assert "rough" in rough.reason


class Blurred(Steps):
    """Values in steps until it is sharpened."""

    def sharpen(self):
        blurred, self.step = self.step > 1e-15, 1e-15
        return blurred


def test_an_objective_that_can_be_sharpened_is_followed_to_its_minimum():
    assert run(Steps(0.5)).value > 1e-2
    result = run(Blurred(0.5))
    np.testing.assert_allclose(result.parameters, CENTRE, atol=1e-4)
    assert result.converged
    assert len(result.history) == result.n_iter <= 100


class Valley(Bowl):
    """Rosenbrock's function: where its valley begins, one iteration gains little and the next ones much."""

    def __init__(self) -> None:
        super().__init__()
        self.current = np.array([-1.0, 1.0])

    def bounds(self):
        return [self.box] * 2

    def evaluate(self, values):
        self.move_to(values)
        return float(rosen(values)), rosen_der(values)


def test_a_single_short_step_is_no_optimum():
    valley = Valley()
    of_scipy = minimize(valley.evaluate, valley.start(), jac=True, method="L-BFGS-B", options={"ftol": 1e-2})
    assert of_scipy.fun > 3.0
    assert run(Valley(), tolerance=1e-2).value < 1e-2


def test_reasons_of_success():
    assert run(Bowl(), tolerance=0.0, gradient_tolerance=1e-3).reason == "the gradient vanished"
    reason = run(Bowl(), tolerance=0.1, gradient_tolerance=0.0).reason
    assert re.match(r"the last iterations improved the objective by less than 0.1 per row \(gradient \S+\)", reason)


def objectives() -> dict[str, Objective]:
    X = random_inputs(0, 80, 2)
    y = random_target(X, 0)
    source = ChunkSource(Chunk(X, y))
    maps = {"mercer": MercerMap(Gaussian(1.0), [1.0, 1.0], 20), "nystrom": NystromMap(Gaussian(1.0), X[:15])}
    low_rank = {
        k: LowRankObjective(LowRankModel(Identity(2), m), source, LocalEngine(), "elbo") for k, m in maps.items()
    }
    return {**low_rank, "exact": ExactObjective(Gaussian([1.0, 1.0]), Chunk(X, y), 0.1)}


@pytest.mark.parametrize("name", ["mercer", "nystrom", "exact"])
def test_training_improves_the_objective_until_its_gradient_is_small(name):
    objective = objectives()[name]
    before, _ = objective.evaluate(objective.start())
    result = minimise(objective, max_iter=300, rank=20, tolerance=1e-12, gradient_tolerance=1e-5)
    value, gradient = objective.evaluate(objective.start())
    low, high = np.array(objective.bounds()).T
    free = (objective.start() > low + 1e-9) & (objective.start() < high - 1e-9)
    assert result.value == pytest.approx(value, rel=1e-12)
    assert value < before - 0.01
    assert np.abs(gradient[free]).max() < 1e-3
    assert (objective.start() >= low).all()
    assert (objective.start() <= high).all()
