"""scikit-learn's callbacks hear of every iteration and may end a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from certgp import MercerGP, SparseGP
from certgp.errors import CertgpWarning

pytest.importorskip("sklearn.callback")
from sklearn.callback import ProgressBar, ScoringMonitor

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(150, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.standard_normal(150)
SHORT = {"random_state": 0, "max_iter": 6, "noise": "constant"}


class Counting:
    def __init__(self, most=None):
        self.most, self.begun, self.ended, self.tasks = most, 0, 0, []

    def setup(self, estimator, context):
        self.begun += 1

    def teardown(self, estimator, context):
        self.ended += 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None):
        assert len(X) == len(y)
        self.tasks.append(context.task_name)
        return self.most is not None and len(self.tasks) >= self.most


def fit(gp):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return gp.fit(X, Y)


def test_a_callback_hears_of_every_iteration_and_may_end_the_fit():
    heard, records = Counting(), []
    gp = fit(SparseGP(10, callbacks=[records.append], **SHORT).set_callbacks(heard))
    assert (heard.begun, heard.ended) == (1, 1)
    assert heard.tasks[-1] == "fit"
    assert len(heard.tasks) - 1 == len(records) >= len(gp.history_)
    ending = Counting(most=2)
    short = fit(SparseGP(10, **SHORT).set_callbacks(ending))
    assert len(short.history_) < len(gp.history_)
    np.testing.assert_array_equal(gp.predict(X), fit(SparseGP(10, **SHORT)).predict(X))
    assert gp.told is None
    assert ending.ended == 1


def test_scikit_learns_own_callbacks_work(capsys):
    monitor = ScoringMonitor(scoring="r2")
    gp = fit(MercerGP(8, **SHORT).set_callbacks(monitor, ProgressBar()))
    scores = [row["r2"] for row in monitor.get_logs().data]
    assert len(scores) >= 2
    assert scores[-1] == pytest.approx(gp.score(X, Y))
    assert "MercerGP" in capsys.readouterr().out
    assert clone(gp).get_params()["rank"] == 8


def test_a_refused_fit_still_lets_callbacks_go():
    heard = Counting()
    with pytest.raises(ValueError, match="max_iter"):
        SparseGP(10, max_iter=-1).set_callbacks(heard).fit(X, Y)
    assert (heard.begun, heard.ended) == (1, 1)
