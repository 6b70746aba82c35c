"""Where float64, the range of the data or the arithmetic of a fit limit what a certificate may say."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from certgp import FourierGP, MercerGP, SparseGP
from certgp.errors import InvalidInputError, NotCertifiableError

FIXED = {"length_scale": 0.5, "signal_variance": 1.0, "noise_variance": 0.01, "optimize": False, "standardize": False}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    return X, np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(200)


def test_float32_statistics_carry_no_bounds_whatever_the_parameter_says_later(rows):
    model = MercerGP(20, dtype="float32", random_state=0, **FIXED).fit(*rows)
    assert model.rank_curve().kl_bound is None
    model.set_params(dtype="float64")
    assert model.rank_curve().kl_bound is None
    with pytest.raises(NotCertifiableError, match="float32"):
        model.certify()


@pytest.mark.parametrize("noise", [1e-7, 1e-12])
def test_variance_brackets_hold_where_the_noise_is_tiny(noise):
    X = np.linspace(0.0, 1.0, 8)[:, None]
    new = np.array([[0.05], [0.33], [0.99]])
    settings = FIXED | {"length_scale": 1.0, "noise_variance": noise}
    model = FourierGP(8, winsorize=False, random_state=0, **settings).fit(X, np.cos(X[:, 0]))
    certificate = model.certify(new, reference_rank=40)
    with mp.workdps(60):
        exact = [float(v) for v in exact_variances(X[:, 0], new[:, 0], noise)]
    assert (certificate.variance_lower <= exact).all()
    assert (exact <= certificate.variance_upper).all()


def exact_variances(X: np.ndarray, new: np.ndarray, noise: float) -> list[mp.mpf]:
    """1 - k_x'(K + s2 I)^-1 k_x of the unit Gaussian kernel."""

    def kernel(A: np.ndarray, B: np.ndarray) -> mp.matrix:
        return mp.matrix([[mp.e ** (-((mp.mpf(a) - mp.mpf(b)) ** 2) / 2) for b in B.tolist()] for a in A.tolist()])

    K = kernel(new, X)
    solved = (kernel(X, X) + mp.mpf(noise) * mp.eye(len(X))) ** -1 * K.T
    return [1 - sum(K[i, j] * solved[j, i] for j in range(len(X))) for i in range(len(new))]


def test_tiny_targets_have_errors_too_and_huge_ones_no_evidence(rows):
    X, y = rows
    settings = FIXED | {"signal_variance": 1e-240, "noise_variance": 1e-242}
    error = SparseGP(4, learn_inducing=False, random_state=0, **settings).fit(X, 1e-120 * y).certify(X[:5]).mean_error
    same = SparseGP(4, learn_inducing=False, random_state=0, **FIXED).fit(X, y).certify(X[:5]).mean_error
    np.testing.assert_allclose(1e120 * error, same, rtol=1e-6)
    settings = FIXED | {"noise_variance": 1e-9}
    huge = SparseGP(4, learn_inducing=False, random_state=0, **settings).fit(X, 1e149 * y)
    assert huge.certify().log_evidence is None, "y'y / s2 is beyond float64"


def test_a_target_that_was_moved_a_little_is_noticed(rows):
    X, y = rows
    model = MercerGP(20, random_state=0, **FIXED).fit(X, y)
    moved = y.copy()
    moved[7] += 1e-5
    with pytest.raises(NotCertifiableError, match="not the ones"):
        model.certify(X[:2], reference_rank=40, rows=(X, moved))


def test_the_predictive_divergence_leaves_out_rows_that_fall_back_to_the_prior(rows):
    X, y = rows
    model = FourierGP(60, random_state=0, **FIXED).fit(X, y)
    inside = model.certify(X[:3], reference_rank=100).predictive_kl
    both = model.certify(np.vstack([X[:3], [[1.6]]]), reference_rank=100)
    assert both.predictive_kl.n_rows == 3
    assert both.predictive_kl.interval == inside.interval
    assert any("1 of 4 rows" in note for note in both.notes)
    outside = model.certify([[1.6]], reference_rank=100)
    assert outside.predictive_kl is None
    assert "P2" not in outside.theorem


def test_a_bound_beyond_the_prior_is_called_little(rows):
    X, y = rows
    weak = SparseGP(2, learn_inducing=False, random_state=0, **FIXED).fit(X, y).certify(X[:5])
    assert any("says little" in note for note in weak.notes)
    assert not SparseGP(30, learn_inducing=False, random_state=0, **FIXED).fit(X, y).certify(X[:5]).notes


def test_a_reference_has_a_largest_rank(rows):
    model = MercerGP(5, random_state=0, **FIXED).fit(*rows)
    with pytest.raises(InvalidInputError, match="reference_rank is 100000, which for 200 training"):
        model.certify(reference_rank=100_000)
