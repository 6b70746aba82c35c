"""Warped inputs: the exact GP on w(x), kept in files and copies, and decided by held-out rows where warp="auto"."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest

import certgp
from certgp.errors import InvalidInputError
from certgp.kernels import Periodic
from certgp.training import StopRule
from helpers import dense_kernel

RNG = np.random.default_rng(0)
GAUSSIAN = RNG.standard_normal((320, 2))
SKEWED = np.exp(1.2 * GAUSSIAN)
Y = np.sin(2.0 * GAUSSIAN[:, 0]) + GAUSSIAN[:, 1] + 0.1 * RNG.standard_normal(320)
NEW = np.exp(1.2 * RNG.standard_normal((30, 2)))
pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
FIXED = {"length_scale": 0.8, "noise_variance": 0.05, "signal_variance": 1.5, "optimize": False, "random_state": 0}


@pytest.fixture(scope="module")
def sparse():
    return certgp.SparseGP(20, warp=True, max_iter=5, random_state=0).fit(SKEWED[:250], Y[:250])


def test_it_is_the_exact_gp_on_warped_inputs_in_units_of_these():
    gp = (
        certgp.ExactGP(kernel="matern32", warp=True, **FIXED)
        .fit(SKEWED[:200], Y[:200])
        .partial_fit(SKEWED[200:], Y[200:])
    )
    np.testing.assert_allclose(gp.kernel_.length_scale, 0.8)
    inputs = gp._fitted().standardiser.inputs
    assert np.abs(inputs(SKEWED)).max() < 6.0 < np.abs((SKEWED - SKEWED.mean(0)) / SKEWED.std(0)).max()
    W, w, centre = inputs(SKEWED), inputs(NEW), Y[:200].mean()
    S = dense_kernel(gp.kernel_, W, W) + 0.05 * np.eye(len(Y))
    mean = centre + dense_kernel(gp.kernel_, w, W) @ np.linalg.solve(S, Y - centre)
    np.testing.assert_allclose(gp.predict(NEW), mean, rtol=1e-8, atol=1e-8)


def test_far_from_all_rows_it_knows_as_little_as_the_prior():
    gp = certgp.ExactGP(kernel="matern32", warp=True, **FIXED).fit(SKEWED, Y)
    assert (gp.warp_ < 0.0).any()  # the power transform itself would end at a bound
    rows = np.median(SKEWED, axis=0) * [[1.0, 1.0], [1e5, 1.0], [1.0, 1e5]]
    _, std = gp.predict(rows, return_std=True, include_noise=False)
    assert std[0] < 0.2 * np.sqrt(1.5)
    np.testing.assert_allclose(std[1:], np.sqrt(1.5), rtol=1e-3)


def test_its_certificate_says_where_the_kernel_acts_and_holds(sparse):
    found = sparse.certify(NEW)
    assert "warped inputs w(x)" in found.kernel_inputs
    assert any("GP on w(x)" in each for each in found.assumptions)
    exact = certgp.ExactGP(kernel=sparse.kernel_, noise_variance=sparse.noise_variance_, optimize=False, warp=True)
    error = np.abs(sparse.predict(NEW) - exact.fit(SKEWED[:250], Y[:250]).predict(NEW))
    assert (error <= found.mean_error + 1e-9).all()


def test_files_copies_and_pickles_predict_alike(sparse, tmp_path):
    sparse.save(tmp_path / "gp.model")
    wanted = sparse.predict(NEW, return_std=True)
    for again in (certgp.load(tmp_path / "gp.model"), deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        for found, known in zip(again.predict(NEW, return_std=True), wanted, strict=True):
            np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(again.warp_, sparse.warp_)


def test_further_rows_do_not_move_the_warp(sparse):
    more = deepcopy(sparse).partial_fit(SKEWED[250:], Y[250:])
    np.testing.assert_array_equal(more.warp_, sparse.warp_)
    assert more.n_rows_ == 320
    assert np.abs(more.predict(NEW) - sparse.predict(NEW)).max() > 1e-4


def test_units_of_the_inputs_do_not_matter(sparse):
    other = certgp.SparseGP(20, warp=True, max_iter=5, random_state=0).fit(1024.0 * SKEWED[:250], Y[:250])
    np.testing.assert_allclose(other.predict(1024.0 * NEW), sparse.predict(NEW), rtol=1e-6)


def test_outputs_share_one_warp():
    Z = np.stack([Y, np.where(np.arange(320) < 40, np.nan, -(Y**2))], 1)
    gp = certgp.SparseGP(15, warp="auto", max_iter=3, random_state=0).fit(SKEWED, Z)
    assert gp.warp_[0] is not None
    np.testing.assert_array_equal(*gp.warp_)
    alone = certgp.SparseGP(15, max_iter=3, random_state=0).fit(SKEWED, Z)
    assert gp.nlpd(SKEWED, Z).sum() < alone.nlpd(SKEWED, Z).sum()


def test_weights_of_rows_do_not_change_the_decision():
    wild = np.where(np.arange(320) % 20 == 0, Y + 2.0, Y)
    gp = certgp.SparseGP(15, warp="auto", likelihood="student", max_iter=3, random_state=0).fit(SKEWED, wild)
    assert gp.row_weights_.min() < 0.5
    assert (gp.warp_ < 0.5).all()


def test_auto_keeps_it_where_held_out_rows_gain():
    gp = certgp.AutoGP(15, candidates=("sparse", "fourier"), max_iter=5, random_state=0).fit(SKEWED, Y)
    assert (gp.warp_ < 0.5).all()
    assert "Inputs are warped: a power transform of 2 of 2 columns gains" in gp.choice_


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        (GAUSSIAN, {}, "no column is clearly skewed"),
        (np.exp(GAUSSIAN), {"y": RNG.standard_normal(320)}, "gains"),
        (SKEWED, {"max_seconds": 0.02}, "too little time"),
        (SKEWED[:40], {"y": Y[:40]}, "too few rows"),
    ],
)
def test_auto_leaves_inputs_alone_elsewhere(X, options, words):
    options = {"y": Y} | options
    y = options.pop("y")
    found = [
        certgp.AutoGP(10, candidates=("sparse",), noise="constant", warp=w, max_iter=2, random_state=0, **options)
        for w in (False, "auto")
    ]
    plain, gp = (each.fit(X, y) for each in found)
    assert gp.warp_ is None
    assert words in gp.choice_[gp.choice_.index("Inputs are not warped") :]
    if not options:
        np.testing.assert_array_equal(gp.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    "gp",
    [
        certgp.ExactGP(length_scale=3.0, max_iter=1),
        certgp.ExactGP(kernel="linear", max_iter=1),
        certgp.MercerGP(8, input_scale=1.0, projection=None, max_iter=1),
        certgp.SparseGP(8, kernel=Periodic(period=2.0), max_iter=1),
    ],
)
def test_auto_leaves_inputs_alone_where_the_user_speaks_of_their_units(gp):
    assert gp.set_params(warp="auto", noise="constant").fit(SKEWED[:100], Y[:100]).warp_ is None


def test_a_stop_rule_ends_the_comparison_too():
    rule = StopRule()
    rule.ask()
    assert certgp.SparseGP(10, warp="auto", callbacks=[rule], random_state=0).fit(SKEWED, Y).warp_ is None


def test_it_is_off_unless_asked_for():
    assert certgp.SparseGP(5, max_iter=1).fit(SKEWED[:60], Y[:60]).warp_ is None


@pytest.mark.parametrize(
    ("options", "message"),
    [({"warp": "yes"}, "True, False or 'auto'"), ({"warp": True, "standardize": False}, "use standardize=True")],
)
def test_what_cannot_work_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        certgp.ExactGP(**options).fit(SKEWED, Y)
