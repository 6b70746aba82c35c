"""GPBoost's Vecchia GP: Matern 3/2, a length-scale per column.

Its hyper-parameters come from at most SOME_ROWS random rows: from all of elevators its optimiser has not ended after
570 CPU seconds. Predictions condition on near rows among all.
"""

from __future__ import annotations

import gpboost
import numpy as np

from league.distributions import Normal
from league.protocol import Job, serve

SOME_ROWS, TRAIN_NEIGHBOURS, NEIGHBOURS = 2_000, 20, 50


def run(job: Job):
    varies = np.ptp(job.X, axis=0) > 0.0  # it refuses constant columns
    chosen = np.random.default_rng(job.seed).permutation(len(job.y))[:SOME_ROWS]
    varies &= np.ptp(job.X[chosen], axis=0) > 0.0
    few = _model(job, chosen, varies)
    few.fit(y=job.y[chosen])
    parameters = few.get_cov_pars(std_err=False, format_pandas=False)
    model = _model(job, slice(None), varies)
    model.set_prediction_data(num_neighbors_pred=min(NEIGHBOURS, len(job.y) - 1))
    found = model.predict(
        gp_coords_pred=job.X_test[:, varies],
        y=job.y,
        cov_pars=np.asarray(parameters).ravel(),
        predict_var=True,
        predict_response=True,
    )
    return Normal(np.asarray(found["mu"]), np.sqrt(np.asarray(found["var"]))), {"gpboost": gpboost.__version__}


def _model(job: Job, rows, columns: np.ndarray) -> gpboost.GPModel:
    X = job.X[rows][:, columns]
    return gpboost.GPModel(
        gp_coords=X,
        cov_function="matern_ard",
        cov_fct_shape=1.5,
        likelihood="gaussian",
        gp_approx="vecchia",
        num_neighbors=min(TRAIN_NEIGHBOURS, len(X) - 1),
        num_parallel_threads=1,
        seed=job.seed,
    )


if __name__ == "__main__":
    serve(run)
