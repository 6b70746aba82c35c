"""GPBoost's Vecchia and full-scale (VIF) GPs: 30 neighbours to train, those of the job to predict.

The kernel is Matern 3/2 with a length-scale per column, as in its examples; VIF has 200 inducing points, its default,
or half as many as rows where that is fewer (it refuses as many as rows, which the warm-up on 200 rows would ask for).
"""

from __future__ import annotations

import gpboost
import numpy as np

from peers.protocol import Job, Recorder, serve

TRAIN_NEIGHBOURS, INDUCING_POINTS = 30, 200


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    varies = np.ptp(job.X, axis=0) > 0.0  # it refuses constant columns
    recorder.start()
    model = gpboost.GPModel(
        gp_coords=job.X[:, varies],
        cov_function="matern_ard",
        cov_fct_shape=1.5,
        likelihood="gaussian",
        gp_approx=job.variant,
        num_neighbors=min(TRAIN_NEIGHBOURS, len(job.y) - 1),
        num_ind_points=min(INDUCING_POINTS, len(job.y) // 2),
        num_parallel_threads=job.threads,
        seed=job.seed,
    )
    model.fit(y=job.y, params={"maxit": job.budget})
    recorder.stop()
    model.set_prediction_data(num_neighbors_pred=min(job.rank, len(job.y) - 1))
    found = model.predict(gp_coords_pred=job.X_test[:, varies], predict_var=True, predict_response=True)
    recorder.add(np.asarray(found["mu"]), np.asarray(found["var"]), model.get_current_neg_log_likelihood() / len(job.y))
    return {"gpboost": gpboost.__version__}


if __name__ == "__main__":
    serve(run)
