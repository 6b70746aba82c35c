"""An interrupted fit goes on from its checkpoint and ends with the same model."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from estimator_cases import problem

from certgp import AutoGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.errors import CheckpointError, InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
MODELS = [
    pytest.param(MercerGP, {"max_iter": 40}, id="mercer"),
    pytest.param(FourierGP, {"learn_frequencies": True, "max_iter": 30}, id="fourier-learned"),
    pytest.param(SparseGP, {"max_iter": 30}, id="sparse"),
    pytest.param(LocalGP, {"max_iter": 40, "neighbours": 20, "train_neighbours": 10}, id="local"),
    pytest.param(AutoGP, {"max_iter": 20}, id="auto"),
]


class Interrupt:
    """A callback that behaves like Ctrl-C at the given call."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, record) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
@pytest.mark.parametrize("at", [3, 25])
def test_same_model_after_an_interruption(cls, parameters, at, tmp_path):
    X, y = problem(n=150, d=5)
    path = tmp_path / "fit.checkpoint"
    whole = cls(rank=12, random_state=3, **parameters).fit(X, y)
    broken = cls(rank=12, random_state=3, checkpoint=path, callbacks=[Interrupt(at)], **parameters)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(X, y)
    assert path.exists()
    resumed = cls(rank=12, random_state=3, checkpoint=path, **parameters).fit(X, y)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert resumed.log_marginal_likelihood_ == whole.log_marginal_likelihood_
    assert resumed.n_iter_ == whole.n_iter_
    assert not path.exists()  # the fit is done


def test_a_checkpoint_of_other_data_is_refused_before_anything_is_lost(tmp_path):
    X, y = problem(n=60)
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        SparseGP(rank=5, random_state=0, checkpoint=path, callbacks=[Interrupt(2)]).fit(X, y)
    before = path.read_bytes()
    for other in (SparseGP(rank=6, random_state=0, checkpoint=path), SparseGP(rank=5, random_state=1, checkpoint=path)):
        with pytest.raises(CheckpointError, match="other data or with other parameters"):
            other.fit(X, y)
    with pytest.raises(CheckpointError, match="other data or with other parameters"):
        SparseGP(rank=5, random_state=0, checkpoint=path).fit(X, y + 1.0)
    assert path.read_bytes() == before


def test_a_seed_that_cannot_be_repeated_is_refused(tmp_path):
    X, y = problem(n=60)
    with pytest.raises(InvalidInputError, match="checkpoint needs random_state to be a whole number"):
        MercerGP(rank=5, random_state=np.random.RandomState(0), checkpoint=tmp_path / "c").fit(X, y)


def test_a_callback_that_stops_a_fit_leaves_a_usable_model_and_no_checkpoint(tmp_path):
    X, y = problem(n=100, d=5)
    path = tmp_path / "fit.checkpoint"
    gp = MercerGP(rank=10, random_state=0, checkpoint=path, callbacks=[lambda record: record.iteration >= 3])
    gp.fit(X, y)
    assert gp.stop_reason_ == "a callback stopped the fit"
    assert np.isfinite(gp.predict(X)).all()
    assert not path.exists()


RACE = {"candidates": ("exact", "exact-matern", "local"), "max_iter": 8, "random_state": 3}
KILLED = """
import os, signal, sys
from certgp import AutoGP
from estimator_cases import problem
from test_checkpoint import RACE
left = int(sys.argv[2])
def kill(record):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
AutoGP(checkpoint=sys.argv[1], callbacks=[kill], **RACE).fit(*problem(n=150, d=3))
"""


def test_a_race_that_was_killed_goes_on_with_the_fit_it_was_at(tmp_path):
    X, y = problem(n=150, d=3)
    path, seen = tmp_path / "race.checkpoint", []
    whole = AutoGP(callbacks=[seen.append], **RACE).fit(X, y)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(len(seen) - 2)],
        cwd=Path(__file__).parent,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert path.exists()  # what is done
    assert list(tmp_path.glob("race.checkpoint.part-*"))  # and what is not
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        AutoGP(checkpoint=path, **RACE).fit(X, y + 1.0)
    again = []
    resumed = AutoGP(checkpoint=path, callbacks=[again.append], **RACE).fit(X, y)
    assert len(again) < len(seen) / 2  # exact models are not fitted again; the one that was cut off is replayed
    assert resumed.method_ == whole.method_
    assert [(each.name, each.score) for each in resumed.trials_] == [(each.name, each.score) for each in whole.trials_]
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    np.testing.assert_array_equal(resumed.predict_quantiles(X, [0.1, 0.9]), whole.predict_quantiles(X, [0.1, 0.9]))
    assert not list(tmp_path.iterdir())
