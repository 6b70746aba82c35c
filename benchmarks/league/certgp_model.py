"""certgp's estimators as a user gets them: defaults, and nothing told about the data but X and y."""

from __future__ import annotations

import warnings

import torch

import certgp
from cells import cpu_seconds
from certgp.data import as_rows
from certgp.errors import CertgpWarning
from fitted import model_of
from league.protocol import Job, serve


class Observations:
    """The predictive distribution of a fitted model, evaluated once."""

    def __init__(self, gp, X) -> None:
        self._found = model_of(gp).observations(as_rows(X))
        self.mean = gp.predict(X)

    def log_density(self, y):
        return self._found.log_density(y)

    def quantiles(self, levels):
        return self._found.quantiles(levels)


def build(variant: str, seed: int):
    """``LocalGP`` or ``AutoGP effort=low`` or ``DeepFourierGP members=3``."""
    name, *words = variant.split()
    settings = dict(word.split("=") for word in words)
    numbers = {key: int(value) if value.isdecimal() else value for key, value in settings.items()}
    # members in turn, one thread each: their seconds and memory are then those of this process
    turns = {"callbacks": [lambda _: None]} if "members" in settings else {}
    return getattr(certgp, name)(random_state=seed, **numbers, **turns)


def run(job: Job):
    torch.set_num_threads(1)
    gp = build(job.variant, job.seed)
    if job.is_practice:
        gp.set_params(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        gp.fit(job.X, job.y)
        found = Observations(gp, job.X_test)
    about = {"certgp": certgp.__version__, "torch": torch.__version__}
    gain = gp.noise_gain_
    about |= {"method": gp.method_, "noise_accepted": None if gain is None else bool(gain.accepted)}
    if isinstance(gp, certgp.AutoGP):
        about |= {"choice": gp.choice_, "trials": [describe_trial(each) for each in gp.trials_]}
    return found, about


def describe_trial(trial) -> dict[str, object]:
    seconds = {"cpu_seconds": trial.seconds, "cpu_seconds_again": trial.seconds_again}
    return {"method": trial.name, "nlpd": trial.score, "rows": trial.rows, **seconds}


if __name__ == "__main__":
    serve(run, cpu_seconds)
