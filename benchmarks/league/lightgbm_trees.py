"""LightGBM: squared error with constant noise."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import lightgbm
import numpy as np

from league.protocol import Job, serve
from league.search import (
    PATIENCE,
    Deadline,
    Rows,
    Settings,
    Trained,
    few_and_many_bins,
    few_and_many_leaves,
    learning_rates,
    log_uniform,
)
from league.tree_runs import run_point, squared_error


class Boosting:
    """Trees by leaves."""

    defaults: ClassVar[Settings] = {"learning_rate": 0.05, "num_leaves": 31, "min_data_in_leaf": 20, "lambda_l2": 0.0}
    loss = staticmethod(squared_error)

    def __init__(self, seed: int) -> None:
        self.fixed = {"objective": "regression", "num_threads": 1, "verbosity": -1, "seed": seed, "deterministic": True}
        self.fixed |= {"force_row_wise": True, "bagging_freq": 1, "feature_pre_filter": False}

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {
            "learning_rate": log_uniform(rng, *learning_rates(n)),
            "num_leaves": round(log_uniform(rng, *few_and_many_leaves(n))),
            "min_data_in_leaf": round(log_uniform(rng, 2, 60)),
            "max_bin": round(log_uniform(rng, *few_and_many_bins(n))),
            "lambda_l2": log_uniform(rng, 1e-3, 10.0),
            "feature_fraction": float(rng.uniform(0.5, 1.0)),
            "bagging_fraction": float(rng.uniform(0.6, 1.0)),
        }

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        parameters = self.fixed | dict(settings)
        data = lightgbm.Dataset(rows.X, rows.y, params=parameters)
        if held is None:
            model = lightgbm.train(parameters, data, rounds)
            return Trained(model.predict, rounds)
        scores: list[float] = []

        def watch(now) -> None:
            scores.append(now.evaluation_result_list[0][2])
            best = int(np.argmin(scores))
            if deadline.is_over or len(scores) > best + PATIENCE:
                raise lightgbm.callback.EarlyStopException(best, now.evaluation_result_list)

        watched = lightgbm.Dataset(held.X, held.y, reference=data)
        model = lightgbm.train(parameters, data, rounds, valid_sets=[watched], callbacks=[watch])
        best = int(np.argmin(scores)) + 1
        return Trained(partial(model.predict, num_iteration=best), best)


def run(job: Job):
    found, about = run_point(Boosting(job.seed), job)
    return found, {"lightgbm": lightgbm.__version__, **about}


if __name__ == "__main__":
    serve(run)
