"""XGBoost: squared error with constant noise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xgboost

from league.protocol import Job, serve
from league.search import (
    PATIENCE,
    Deadline,
    Rows,
    Settings,
    Trained,
    few_and_many_bins,
    learning_rates,
    log_uniform,
    more_depth,
)
from league.tree_runs import run_point, squared_error


class Watch(xgboost.callback.TrainingCallback):
    """Ends training at the deadline or when held-out rows have stopped to gain."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self.deadline, self.scores = deadline, []

    def after_iteration(self, model, epoch, evals_log) -> bool:
        self.scores = evals_log["held"]["rmse"]
        return self.deadline.is_over or len(self.scores) > self.best + PATIENCE

    @property
    def best(self) -> int:
        """The round, counted from one."""
        return int(np.argmin(self.scores)) + 1


class Boosting:
    """Histogram trees."""

    defaults: ClassVar[Settings] = {"eta": 0.05, "max_depth": 6}
    loss = staticmethod(squared_error)

    def __init__(self, seed: int) -> None:
        self.fixed = {"objective": "reg:squarederror", "tree_method": "hist", "nthread": 1, "seed": seed}

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {
            "eta": log_uniform(rng, *learning_rates(n)),
            "max_depth": int(rng.integers(3 + more_depth(n), 12 + more_depth(n))),
            "max_bin": round(log_uniform(rng, *few_and_many_bins(n))),
            "min_child_weight": log_uniform(rng, 1.0, 30.0),
            "lambda": log_uniform(rng, 1e-2, 10.0),
            "colsample_bytree": float(rng.uniform(0.5, 1.0)),
            "subsample": float(rng.uniform(0.6, 1.0)),
        }

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        parameters, data = self.fixed | dict(settings), xgboost.DMatrix(rows.X, rows.y, nthread=1)
        if held is None:
            return _trained(xgboost.train(parameters, data, rounds), rounds)
        watch, watched = Watch(deadline), xgboost.DMatrix(held.X, held.y, nthread=1)
        model = xgboost.train(
            parameters, data, rounds, evals=[(watched, "held")], callbacks=[watch], verbose_eval=False
        )
        return _trained(model, watch.best)


def _trained(model: xgboost.Booster, rounds: int) -> Trained:
    def predict(X: np.ndarray) -> np.ndarray:
        return model.predict(xgboost.DMatrix(X, nthread=1), iteration_range=(0, rounds)).astype(np.float64)

    return Trained(predict, rounds)


def run(job: Job):
    found, about = run_point(Boosting(job.seed), job)
    return found, {"xgboost": xgboost.__version__, **about}


if __name__ == "__main__":
    serve(run)
