"""ExactGP(solver="iterative"): the dense exact GP's means to a proven tolerance, and brackets that hold it."""

from __future__ import annotations

import numpy as np
import pytest

import certgp
from certgp import ExactGP
from certgp.errors import CertgpError, ConvergenceWarning
from certgp.gp import ExactProcess, IterativeProcess
from certgp.kernels import Gaussian, Linear, Matern32, Periodic

FIXED = {"length_scale": 0.8, "signal_variance": 1.5, "noise_variance": 0.1, "optimize": False}


def data(n: int = 300, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 5.0 + 3.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def pair(X, y, **parameters):
    """The same model by both solvers."""
    both = {"solver": "iterative", "random_state": 0} | FIXED | parameters
    iterative = ExactGP(**both).fit(X, y)
    dense = ExactGP(
        kernel=iterative.kernel_, noise_variance=iterative.noise_variance_, optimize=False, solver="dense",
        standardize=both.get("standardize", True),
    )  # fmt: skip
    return iterative, dense.fit(X, y)


@pytest.mark.parametrize("kernel", ["gaussian", "matern12", Matern32(0.8, 1.5) + Periodic(1.0, columns=[0])])
@pytest.mark.parametrize("standardize", [True, False])
def test_every_statement_holds_against_the_dense_exact_gp(kernel, standardize):
    X, y = data()
    fixed = {} if isinstance(kernel, str) else {"length_scale": None, "signal_variance": None}
    gp, dense = pair(X, y, kernel=kernel, standardize=standardize, **fixed)
    new = np.vstack([data(20, seed=1)[0], X[:5]])
    found, truth = gp.certify(new), dense.certify(new)
    error = np.abs(gp.predict(new) - dense.predict(new))
    assert (error <= found.mean_error).all()
    assert found.mean_error.max() <= 0.0101 * y.std() * (1.0 if isinstance(kernel, str) else 3.0)
    assert (found.variance_lower <= truth.variance_lower + 1e-9).all()
    assert (found.variance_upper >= truth.variance_upper - 1e-9).all()
    assert dense.log_marginal_likelihood_ in found.log_evidence
    assert "V7" in found.theorem


def test_a_kernel_without_bounds_on_its_rounding_predicts_but_is_not_certified():
    X, y = data()
    kernel = Gaussian(0.8) + Linear(0.3)
    gp, dense = pair(X, y, kernel=kernel, length_scale=None, signal_variance=None, tolerance=1e-6)
    new = data(20, seed=1)[0]
    np.testing.assert_allclose(gp.predict(new), dense.predict(new), atol=1e-5)
    with pytest.raises(CertgpError, match="rounding"):
        gp.certify(new)


def test_rows_outside_the_training_range():
    X, y = data()
    gp, dense = pair(X, y)
    new = np.array([[6.0, 0.0], [40.0, -40.0]])
    with pytest.warns(UserWarning, match="outside"):
        found = gp.certify(new)
    with pytest.warns(UserWarning, match="outside"):
        assert (np.abs(gp.predict(new) - dense.predict(new)) <= found.mean_error).all()


def test_hyper_parameters_are_learned_and_judged():
    X, y = data(400)
    gp = ExactGP(kernel="matern32", solver="iterative", random_state=0).fit(X, y)
    assert [trial.name for trial in gp.trials_] == ["near rows", "exact on some rows"]
    assert gp.score(*data(200, seed=1)) > 0.97
    assert gp.rank_ == gp.n_rows_ == 400
    dense = ExactGP(kernel=gp.kernel_, noise_variance=gp.noise_variance_, optimize=False).fit(X, y)
    start = ExactGP(kernel="matern32", optimize=False).fit(X, y)
    assert dense.log_marginal_likelihood_ > start.log_marginal_likelihood_


def test_a_tighter_tolerance_gives_closer_means():
    X, y = data()
    gp, dense = pair(X, y, tolerance=1e-8)
    new = data(30, seed=1)[0]
    assert np.abs(gp.predict(new) - dense.predict(new)).max() < 1e-8 * y.std()
    assert gp.certify(new).mean_error.max() < 1e-8 * y.std()


def test_files_and_further_rows(tmp_path):
    X, y = data()
    fixed = FIXED | {"standardize": False}
    gp = ExactGP(solver="iterative", tolerance=1e-9, **fixed).fit(X[:250], y[:250])
    with pytest.raises(CertgpError, match="include_training_data"):
        gp.save(tmp_path / "gp.model")
    gp.save(tmp_path / "gp.model", include_training_data=True)
    again, new = certgp.load(tmp_path / "gp.model"), data(20, seed=1)[0]
    np.testing.assert_array_equal(again.predict(new, return_std=True), gp.predict(new, return_std=True))
    assert again.certify(new).mean_error.max() == gp.certify(new).mean_error.max()
    assert again.certify(new, rows=(X[:250], y[:250])).theorem == gp.certify(new).theorem
    with pytest.raises(CertgpError, match="not the ones"):
        again.certify(rows=(X[:250], y[:250] + 1.0))
    again.partial_fit(X[250:], y[250:])
    assert isinstance(again._model.process, IterativeProcess)
    assert again.n_rows_ == 300
    dense = ExactGP(solver="dense", **fixed).fit(X, y)
    np.testing.assert_allclose(again.predict(new), dense.predict(new), atol=1e-7)


def test_auto_is_dense_where_that_is_affordable():
    X, y = data(50)
    assert isinstance(ExactGP(**FIXED).fit(X, y)._model.process, ExactProcess)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((40, 1)), np.arange(40.0)),
        (np.arange(5.0)[:, None], np.arange(5.0)),
        (np.random.default_rng(0).standard_normal((60, 200)), np.random.default_rng(1).standard_normal(60)),
        (np.arange(30.0)[:, None], np.ones(30)),
    ],
    ids=["equal rows", "few rows", "many columns", "constant target"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_degenerate_rows(X, y):
    gp = ExactGP(solver="iterative", random_state=0, max_iter=5).fit(X, y)
    mean, deviation = gp.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (deviation > 0.0).all()
    certificate = gp.certify(X[:3])
    assert np.isfinite(certificate.mean_error).all()


def test_an_unreachable_tolerance_is_announced():
    X, y = data(100)
    with pytest.warns(ConvergenceWarning, match="at rounding"):
        gp = ExactGP(solver="iterative", tolerance=1e-18, **FIXED).fit(X, y)
    assert 1e-18 < gp.certify(X[:3]).mean_error.max() < 1e-8


@pytest.mark.parametrize(("name", "value"), [("solver", "fast"), ("solver", None), ("tolerance", 0.0)])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(CertgpError, match=name):
        ExactGP(**{name: value}).fit(*data(20))


def test_the_cost_is_shown_on_request(capsys):
    X, y = data(100)
    ExactGP(solver="iterative", verbose=1, **FIXED).fit(X, y)
    assert "products with the 100 x 100 kernel matrix" in capsys.readouterr().err


@pytest.mark.parametrize("cls", [certgp.LocalGP, ExactGP])
def test_exact_solve_certifies_models_that_hold_their_rows(cls, capsys):
    X, y = data()
    fixed = FIXED | {"kernel": "matern32"} | ({"solver": "iterative"} if cls is ExactGP else {"neighbours": 10})
    gp, new = cls(random_state=0, **fixed).fit(X, y), data(20, seed=1)[0]
    dense = ExactGP(solver="dense", **FIXED | {"kernel": "matern32"}).fit(X, y)
    found = gp.certify(new, tol=1e-5, exact_solve=True)
    error = np.abs(gp.predict(new) - dense.predict(new))
    assert (found.mean_error_lower <= error).all()
    assert (error <= found.mean_error).all()
    assert (found.mean_error - found.mean_error_lower).max() <= 2.0e-5
    assert "products with the" in capsys.readouterr().err
    with pytest.raises(CertgpError, match="pass the rows"):
        gp.certify(tol=1e-5, exact_solve=True)
