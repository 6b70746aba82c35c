"""scikit-learn's HistGradientBoostingRegressor with quantile loss, one model per quantile."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import ClassVar

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor

from league.protocol import Job, own_cpu_seconds, serve
from league.search import PATIENCE, Deadline, Rows, Settings, Trained, few_and_many_leaves, learning_rates, log_uniform
from league.tree_runs import pinball, run_quantiles

LEAST_STEP, MOST_STEP = 5, 100  # rounds between two looks at the deadline


class Boosting:
    """One quantile."""

    defaults: ClassVar[Settings] = {"learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 20}

    def __init__(self, seed: int, level: float) -> None:
        self.fixed = {"loss": "quantile", "quantile": level, "random_state": seed}
        self.loss = partial(pinball, level)

    def draw(self, rng: np.random.Generator, n: int) -> Settings:
        return {
            "learning_rate": log_uniform(rng, *learning_rates(n)),
            "max_leaf_nodes": round(log_uniform(rng, *few_and_many_leaves(n))),
            "min_samples_leaf": round(log_uniform(rng, 2, 60)),
            "l2_regularization": log_uniform(rng, 1e-3, 10.0),
            "max_features": float(rng.uniform(0.5, 1.0)),
        }

    def train(self, settings: Settings, rows: Rows, held: Rows | None, rounds: int, deadline: Deadline) -> Trained:
        model = HistGradientBoostingRegressor(**self.fixed, **settings)
        if held is None:
            model.set_params(max_iter=rounds, early_stopping=False).fit(rows.X, rows.y)
            return Trained(model.predict, rounds)
        model.set_params(warm_start=True, early_stopping=True, n_iter_no_change=PATIENCE)
        reached, step = 0, LEAST_STEP
        while reached < rounds and not (reached and deadline.is_over):
            reached, before = min(reached + step, rounds), own_cpu_seconds()
            model.set_params(max_iter=reached).fit(rows.X, rows.y, X_val=held.X, y_val=held.y)
            if model.n_iter_ < reached:
                break
            of_one = max(own_cpu_seconds() - before, 1e-3) / step
            step = int(min(max(deadline.left / of_one, LEAST_STEP), 2 * step, MOST_STEP))
        best = max(int(np.argmax(model.validation_score_)), 1)  # the first score is that of no tree
        return Trained(lambda X: next(islice(model.staged_predict(X), best - 1, None)), best)


def run(job: Job):
    found, about = run_quantiles(partial(Boosting, job.seed), job)
    return found, {"scikit-learn": sklearn.__version__, **about}


if __name__ == "__main__":
    serve(run)
