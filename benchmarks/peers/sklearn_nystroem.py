"""scikit-learn: Nystroem features and Ridge, gamma and alpha by cross-validation on the training rows."""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from peers.protocol import Job, Recorder, serve


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    recorder.start()
    search = GridSearchCV(
        make_pipeline(Nystroem(kernel="rbf", n_components=job.rank, random_state=job.seed), Ridge()),
        # gamma = 1 / (2 length-scale^2), around a length-scale of sqrt(D)
        {
            "nystroem__gamma": 0.5 / job.X.shape[1] * np.logspace(-2, 1, 7),
            "ridge__alpha": np.logspace(-4, 1, 6),
        },
        scoring="neg_mean_squared_error",
        cv=job.budget,
    ).fit(job.X, job.y)
    noise = np.mean((job.y - search.predict(job.X)) ** 2)  # the same everywhere: Ridge has no other
    recorder.stop()
    recorder.add(search.predict(job.X_test), np.full(len(job.y_test), noise), None)
    return {"scikit-learn": sklearn.__version__, "folds": job.budget} | search.best_params_


if __name__ == "__main__":
    serve(run)
