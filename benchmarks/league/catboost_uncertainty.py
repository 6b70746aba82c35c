"""CatBoost's RMSEWithUncertainty, a Gaussian with a variance of its own, where a candidate may fail without the rest.

CatBoost hands its losses to callbacks as JSON, which has no infinity: on data with outliers a likelihood that overflows
on held-out rows ends the training with an error. Such a candidate is a constant, and loses to the others.
"""

from __future__ import annotations

import catboost
import numpy as np

from league.catboost_trees import Boosting
from league.protocol import Job, serve
from league.search import Deadline, Rows, Settings, Trained
from league.tree_runs import gaussian_loss, run_gaussian

LOSS = "RMSEWithUncertainty"
STOPPED_BY = (LOSS, "RMSE")  # a few rows of which it is too sure end the first one early
OVERFLOWN = "invalid float value"


class Guarded:
    """Boosting of a mean and a variance, whose losses may overflow."""

    defaults = Boosting.defaults
    loss = staticmethod(gaussian_loss)

    def __init__(self, seed: int) -> None:
        self._boosting = Boosting(seed, LOSS)
        self.overflown = 0

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {"eval_metric": STOPPED_BY[rng.integers(2)]} | self._boosting.draw(rng, n)

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        try:
            return self._boosting.train(settings, rows, held, rounds, deadline)
        except catboost.CatBoostError as error:
            if OVERFLOWN not in str(error):
                raise
        self.overflown += 1
        moments = np.array([rows.y.mean(), rows.y.var()])
        return Trained(lambda X: np.tile(moments, (len(X), 1)), 1)


def run(job: Job):
    learner = Guarded(job.seed)
    found, about = run_gaussian(learner, job)
    return found, {"catboost": catboost.__version__, "overflown": learner.overflown, **about}


if __name__ == "__main__":
    serve(run)
