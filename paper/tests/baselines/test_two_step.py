"""DNN+S, DNN+M and DNN+F, and the claim that joint training beats them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from certgp import DeepFourierGP, DeepMercerGP
from certgp.errors import DataFileError, InvalidInputError
from certgp_paper.baselines.two_step import NetworkRegressor, TwoStepGP
from certgp_paper.datasets import load_dataset

QUICK = {"hidden": (32, 16), "max_iter": 8, "random_state": 0}


def problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def rows():
    return *problem(400, 0), *problem(300, 1)


@pytest.mark.parametrize(
    "model", [NetworkRegressor(**QUICK), TwoStepGP("mercer", **QUICK), TwoStepGP("fourier", **QUICK)]
)
def test_all_three_learn_and_know_their_noise(rows, model):
    X, y, new, seen = rows
    fitted = clone(model).fit(X, y)
    assert fitted.score(new, seen) > 0.8
    mean, std = fitted.predict(new, return_std=True)
    lower, upper = fitted.predict_interval(new, 0.9)
    assert 0.7 < np.mean((lower <= seen) & (seen <= upper)) <= 1.0
    density = -0.5 * (np.log(2 * np.pi * std**2) + ((seen - mean) / std) ** 2)
    assert fitted.nlpd(new, seen) == pytest.approx(-density.mean(), rel=1e-9)
    again = clone(model).fit(X, y)
    assert np.array_equal(again.predict(new), fitted.predict(new))


def test_the_network_is_the_same_for_both_heads_and_knows_nothing_of_them(rows):
    X, y, new, _ = rows
    mercer, fourier = (TwoStepGP(head, **QUICK).fit(X, y) for head in ("mercer", "fourier"))
    first, second = (model._process.model.transform.module[0].weight for model in (mercer, fourier))
    assert np.array_equal(first, second)
    assert (mercer.rank_, fourier.rank_) == (15, 40)
    assert np.corrcoef(mercer.predict(new), fourier.predict(new))[0, 1] > 0.999


def test_noise_of_training_rows_and_of_held_out_rows(rows):
    X, y, new, seen = rows
    plain, calibrated = (NetworkRegressor(calibrate=c, **QUICK).fit(X, y) for c in (False, True))
    assert plain.noise_variance_ == plain.training_noise_variance_ == calibrated.training_noise_variance_
    assert calibrated.noise_variance_ != plain.noise_variance_
    assert TwoStepGP("mercer", **QUICK).fit(X, y).noise_scale_ == 1.0
    assert TwoStepGP("mercer", calibrate=True, **QUICK).fit(X, y).noise_scale_ >= 1.0
    assert np.isfinite(calibrated.nlpd(new, seen))


def test_unknown_heads_are_refused(rows):
    with pytest.raises(InvalidInputError, match="head must be one of 'mercer', 'fourier', found 'linear'"):
        TwoStepGP("linear").fit(*rows[:2])


def elevators(rows: int):
    try:
        X, y = load_dataset("elevators")
    except DataFileError as error:
        pytest.skip(f"the data set is not here: {error}")
    order = np.random.default_rng(0).permutation(len(y))[: rows + 3000]
    X, y = X[order], (y[order] - y.mean()) / y.std()
    return X[:rows], y[:rows], X[rows:], y[rows:]


@pytest.mark.parametrize(("cls", "head"), [(DeepFourierGP, "fourier"), (DeepMercerGP, "mercer")], ids=["DFGP", "DMGP"])
@pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
def test_joint_training_beats_two_steps(cls, head):
    """Same network, rows, steps, averaging, held-out rows and calibration; only the likelihood differs. Two seeds."""
    X, y, new, seen = elevators(3000)
    same = {"hidden": (32, 16), "max_iter": 16}
    joint = [cls(random_state=s, **same).fit(X, y).nlpd(new, seen) for s in range(2)]
    two_step = [TwoStepGP(head, calibrate=True, random_state=s, **same).fit(X, y).nlpd(new, seen) for s in range(2)]
    assert np.mean(joint) < np.mean(two_step)
