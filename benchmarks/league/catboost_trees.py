"""CatBoost: squared error with constant noise."""

from __future__ import annotations

from typing import ClassVar

import catboost
import numpy as np

from league.protocol import Job, serve
from league.search import (
    MANY_ROWS,
    PATIENCE,
    Deadline,
    Rows,
    Settings,
    Trained,
    few_and_many_bins,
    log_uniform,
    more_depth,
)
from league.tree_runs import run_point, squared_error

GROW = ("SymmetricTree", "Depthwise")


class Watch:
    """Ends training at the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline

    def after_iteration(self, info) -> bool:
        return not self.deadline.is_over


class Boosting:
    """Trees that are grown level by level."""

    defaults: ClassVar[Settings] = {"learning_rate": 0.1, "depth": 6}
    loss = staticmethod(squared_error)

    def __init__(self, seed: int, loss: str = "RMSE") -> None:
        self.fixed = {"loss_function": loss, "thread_count": 1, "random_seed": seed, "bootstrap_type": "MVS"}
        self.fixed |= {"allow_writing_files": False, "logging_level": "Silent"}

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {
            "learning_rate": log_uniform(rng, 0.03, 0.3 if n <= MANY_ROWS else 0.5),
            "depth": int(rng.integers(4 + more_depth(n) // 2, 10 + more_depth(n))),
            "grow_policy": GROW[rng.integers(2)],
            "border_count": round(log_uniform(rng, *few_and_many_bins(n))),
            "l2_leaf_reg": log_uniform(rng, 0.5, 10.0),
            "random_strength": log_uniform(rng, 0.1, 10.0),
            "subsample": float(rng.uniform(0.6, 1.0)),
        }

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        model = catboost.CatBoostRegressor(iterations=rounds, **self.fixed, **settings)
        if held is None:
            model.fit(rows.X, rows.y)
        else:
            model.set_params(od_type="Iter", od_wait=PATIENCE, use_best_model=True)
            model.fit(rows.X, rows.y, eval_set=(held.X, held.y), callbacks=[Watch(deadline)])
        return Trained(model.predict, int(model.tree_count_))


def run(job: Job):
    found, about = run_point(Boosting(job.seed), job)
    return found, {"catboost": catboost.__version__, **about}


if __name__ == "__main__":
    serve(run)
