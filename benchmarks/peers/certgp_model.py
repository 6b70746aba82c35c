"""A certgp estimator at its defaults but with constant noise. Points are charged with the pass over all rows that makes
a model of them.
"""

from __future__ import annotations

import warnings

import torch

import certgp
from certgp.errors import CertgpWarning
from peers.contestants import DEEP, LOCAL
from peers.protocol import Job, Recorder, serve, time_call


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    torch.set_num_threads(job.threads)
    settings = {"noise": "constant"}  # as the peers have; and points of a trace are Gaussian
    if job.budget is not None:
        settings["max_iter"] = job.budget
    if job.variant in LOCAL.values():
        settings["neighbours"] = job.rank
    elif job.variant not in DEEP.values():  # these keep the rank of their paper: it is on a learned embedding
        settings["rank"] = job.rank

    def score(model: certgp.estimators.base.GPRegressor) -> tuple:
        mean, std = model.predict(job.X_test, return_std=True)
        return mean, std**2, objective_per_row(model, len(job.y))

    def watch(_: object) -> bool:
        if recorder.due and job.variant not in LOCAL.values():  # which has no model before its last round
            with recorder.paused():
                now = []
                charge = time_call(lambda: now.append(model.so_far()))
                recorder.add(*score(now[0]), charge)
        return recorder.time_is_up

    family = getattr(certgp, job.variant)  # imports what it needs, so before the clock starts
    recorder.start()
    model = family(random_state=job.seed, callbacks=[watch], **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        model.fit(job.X, job.y)
    recorder.stop()
    recorder.add(*score(model))
    return {
        "certgp": certgp.__version__,
        "torch": torch.__version__,
        "rank": model.rank_,
        "iterations": model.n_iter_,
        "stopped": model.stop_reason_,
    }


def objective_per_row(model: certgp.estimators.base.GPRegressor, n: int) -> float:
    """Negative ELBO per row where that was the objective, else negative log evidence of the low-rank model."""
    elbo = model.rank_curve().elbo if getattr(model, "objective", "") == "elbo" else None
    return float(-(model.log_marginal_likelihood_ if elbo is None else elbo[-1])) / n


if __name__ == "__main__":
    serve(run)
