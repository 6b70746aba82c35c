"""Adam on the exact full-data gradient: for comparison with work that trains so. L-BFGS needs far fewer evaluations."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certgp.errors import NotPositiveDefiniteError
from certgp.training import Callback, History, Iteration, Objective, OptimisationResult

Array = NDArray[np.float64]
_BETAS = (0.9, 0.999)
_EPSILON = 1e-7  # that of TensorFlow's Adam; torch has 1e-8


class Adam:
    """The state of Adam for one vector of parameters.  [Kingma & Ba 2015]

    m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   x <- x - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
    """

    def __init__(self, size: int, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self._m, self._v, self._t = np.zeros(size), np.zeros(size), 0

    def step(self, values: Array, gradient: Array) -> Array:
        """The parameters (P,) after a step from ``values``, where the gradient is ``gradient``."""
        self._t += 1
        b1, b2 = _BETAS
        self._m = b1 * self._m + (1.0 - b1) * gradient
        self._v = b2 * self._v + (1.0 - b2) * np.square(gradient)
        m, v = self._m / (1.0 - b1**self._t), self._v / (1.0 - b2**self._t)
        moved: Array = values - self.learning_rate * m / (np.sqrt(v) + _EPSILON)
        return moved


def descend(
    objective: Objective, *, steps: int, learning_rate: float, rank: int, callbacks: Sequence[Callback] = ()
) -> OptimisationResult:
    """``steps`` steps of Adam from the objective's current parameters, clipped to its bounds.

    The last point counts, not the best one, and the rate stays: what "n epochs of Adam" means where nothing else is
    said. The objective's parameters are set to that point.
    """
    started = time.perf_counter()
    lower, upper = np.array(objective.bounds()).reshape(-1, 2).T
    values = np.clip(objective.start(), lower, upper)
    adam, history, value = Adam(len(values), learning_rate), [], float("nan")
    reason, stopped = f"all {steps} steps were taken", False
    before = values
    for number in range(1, steps + 1):
        try:
            value, gradient = objective.evaluate(values)
        except NotPositiveDefiniteError as error:
            values, reason = before, f"step {number} could not be evaluated ({error}); lower the learning rate"
            break
        record = Iteration(number, value, float(np.linalg.norm(gradient)), time.perf_counter() - started, rank)
        history.append(record)
        before, values = values, np.clip(adam.step(values, gradient), lower, upper)
        if any([callback(record) for callback in callbacks]):  # all of them see the record  # noqa: C419
            reason, stopped = "a callback stopped the fit", True
            break
    objective.move_to(values)
    done = len(history) == steps and not stopped
    return OptimisationResult(values, value, len(history), done, reason, stopped, History(tuple(history)))
