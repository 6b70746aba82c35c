"""rank="auto": the certified divergence meets the tolerance at a frugal rank, or a warning says why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import certgp
from certgp.errors import InvalidInputError, RankWarning
from certgp.guarantees import gaussian_kl
from certgp.transforms import Projection

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(400)


def dense_kl(gp: certgp.estimators.GPRegressor, X: np.ndarray) -> float:
    process = gp._model.process
    inputs = gp._model.tensor(X)
    if isinstance(process.model.transform, Projection):
        inputs = process.model.transform(inputs)
    K = process.signal_variance * process.model.features.kernel(inputs, inputs).detach().numpy()
    phi = process.features(gp._model.tensor(X)).numpy()
    eye = process.noise_variance * np.eye(len(X))
    return gaussian_kl(K + eye, phi @ phi.T + eye)


@pytest.mark.parametrize(
    "gp",
    [
        certgp.MercerGP("auto", tolerance=1e-3, max_iter=40, random_state=0),
        certgp.SparseGP("auto", tolerance=1e-3, max_iter=30, random_state=0),
        certgp.FourierGP("auto", tolerance=1e-2, max_iter=30, random_state=0),
        certgp.SparseGP("auto", kernel="matern52", tolerance=1e-2, max_iter=30, random_state=0),
    ],
    ids=lambda gp: f"{type(gp).__name__}-{gp.kernel}",
)
def test_tolerance_is_met_and_the_rank_is_within_one_doubling(gp, data):
    X, y = data
    gp.fit(X, y)
    certificate = gp.certify()
    assert certificate.kl.upper <= gp.tolerance * len(X)
    assert certificate.kl.lower - 1e-6 <= dense_kl(gp, X) <= certificate.kl.upper + 1e-6
    assert gp.rank_ == gp._model.process.model.rank
    half = gp._model.process.truncated(max(gp.rank_ // 2 // 2 * 2, 2))
    gp.hold(replace(gp._model, process=half))
    assert gp.rank_ < 5 or dense_kl(gp, X) > gp.tolerance * len(X)


def test_no_training_row_is_winsorised_where_the_certificate_counts():
    """At a rank that is given 2 of 1,500 rows are moved, and the exact GP on the rows as they are is out of reach."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_500, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(1_500)
    fixed = {"length_scale": 0.5, "noise_variance": 0.01, "optimize": False, "random_state": 0}
    gp = certgp.FourierGP("auto", tolerance=1e-2, **fixed).fit(X, y)
    assert gp.certify().kl.upper <= 1e-2 * len(X)
    at_that_rank = certgp.FourierGP(gp.rank_, **fixed).fit(X, y)
    assert at_that_rank.certify().kl.lower > 1e-2 * len(X)


def test_max_rank_ends_the_search_with_a_reason(data):
    X, y = data
    with pytest.warns(RankWarning, match=r"ended at rank 8 .* Raise max_rank \(now 8\) or tolerance"):
        gp = certgp.MercerGP("auto", tolerance=1e-9, max_rank=8, optimize=False, length_scale=0.3).fit(X, y)
    assert gp.rank_ == 8


def test_automatic_models_survive_saving_and_predict(data, tmp_path):
    X, y = data
    gp = certgp.MercerGP("auto", tolerance=1e-2, max_iter=20, random_state=0).fit(X, y)
    gp.save(tmp_path / "m")
    again = certgp.load(tmp_path / "m")
    assert np.array_equal(again.predict(X[:5]), gp.predict(X[:5]))
    assert again.certify().kl == gp.certify().kl
    assert again.rank == "auto"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"max_rank": 0}, "max_rank must be a whole number"),
        ({"tolerance": "tight"}, "tolerance must be positive"),
        ({"dtype": "float32"}, "float32 features leave rounding errors that no certificate covers"),
    ],
)
def test_nonsense_is_refused(data, options, message):
    with pytest.raises(InvalidInputError, match=message):
        certgp.MercerGP("auto", **options).fit(*data)


def test_given_inducing_points_have_their_own_rank(data):
    with pytest.raises(InvalidInputError, match="rank='auto' chooses inducing points itself"):
        certgp.SparseGP("auto", inducing=data[0][:5]).fit(*data)


@pytest.mark.parametrize("cls", [certgp.MercerGP, certgp.SparseGP])
def test_a_short_wave_is_not_taken_for_noise_though_few_features_meet_the_tolerance(cls):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1_100, 2))
    truth = X[:, 1] + 1.5 * np.sin(40.0 * X[:, 0])
    y = truth + 0.3 * rng.standard_normal(1_100)
    gp = cls("auto", max_iter=40, noise="constant", random_state=0).fit(X[:900], y[:900])
    assert gp.certify().kl.upper <= gp.tolerance * 900
    assert np.sqrt(np.mean((gp.predict(X[900:]) - truth[900:]) ** 2)) < 0.15  # 1.0 at rank 16
