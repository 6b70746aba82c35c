"""NGBoost: a Gaussian whose mean and log standard deviation are boosted by natural gradients."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from typing import ClassVar

import ngboost
import numpy as np
from sklearn.tree import DecisionTreeRegressor

from league.protocol import Job, serve
from league.search import PATIENCE, Deadline, Rows, Settings, Trained, learning_rates, log_uniform, more_depth
from league.tree_runs import FEWER_FOLDS, gaussian_loss, run_gaussian

STOPPED_BY = ("density", "error")  # at held-out rows; a few rows of which it is too sure end the first one early
MINIBATCH = 5_000  # rows of a round that a search may go down to


class Over(Exception):
    """Held-out rows have stopped to gain, or the deadline has come: NGBoost has no other way to be stopped."""


class Boosting:
    """Its default learner is a tree of depth 3."""

    defaults: ClassVar[Settings] = {"learning_rate": 0.05, "depth": 3, "leaf": 1, "minibatch_frac": 1.0}
    loss = staticmethod(gaussian_loss)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {
            "learning_rate": log_uniform(rng, *learning_rates(n)),
            "depth": int(rng.integers(3 + more_depth(n), 9 + more_depth(n))),
            "leaf": round(log_uniform(rng, 1, 60)),
            "stopped_by": STOPPED_BY[rng.integers(2)],
            "minibatch_frac": log_uniform(rng, min(0.3, MINIBATCH / n), 1.0),
        }

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        others = dict(settings)
        stopped_by = others.pop("stopped_by", "density")
        tree = DecisionTreeRegressor(
            criterion="friedman_mse",
            max_depth=others.pop("depth"),
            min_samples_leaf=others.pop("leaf"),
            random_state=self.seed,
        )
        model = ngboost.NGBRegressor(Base=tree, n_estimators=rounds, verbose=False, random_state=self.seed, **others)
        if held is None:
            return _trained(model.fit(rows.X, rows.y), rounds)
        scores: list[float] = []

        def watch(distribution, y) -> float:
            losses = -distribution.logpdf(y) if stopped_by == "density" else (y - distribution.loc) ** 2
            scores.append(float(np.mean(losses)))
            if deadline.is_over or len(scores) > int(np.argmin(scores)) + PATIENCE:
                raise Over
            return scores[-1]

        with suppress(Over):
            model.fit(rows.X, rows.y, held.X, held.y, val_loss_monitor=watch)
        return _trained(model, int(np.argmin(scores)) + 1)


def _trained(model: ngboost.NGBRegressor, rounds: int) -> Trained:
    def predict(X: np.ndarray) -> np.ndarray:
        found = model.pred_dist(X, max_iter=rounds)
        return np.column_stack([found.loc, found.scale**2])

    return Trained(predict, rounds)


def run(job: Job):
    found, about = run_gaussian(Boosting(job.seed), job, FEWER_FOLDS)
    return found, {"ngboost": version("ngboost"), **about}


if __name__ == "__main__":
    serve(run)
