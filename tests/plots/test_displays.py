"""Displays show the report's own numbers, into axes of one's own or a figure outside pyplot."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from certgp import SparseGP
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.plots import CalibrationDisplay, PredictedActualDisplay, RankCurveDisplay, ResidualsDisplay
from certgp.report.predicted import CalibrationCurve, ResidualGroups

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(300, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.standard_normal(300)


@pytest.fixture(scope="module")
def gp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return SparseGP(12, max_iter=8, noise="constant", random_state=0).fit(X[:200], Y[:200])


@pytest.mark.parametrize("display", [PredictedActualDisplay, CalibrationDisplay, ResidualsDisplay])
def test_a_display_draws_an_estimator_and_predictions(display, gp):
    shown = display.from_estimator(gp, X[200:], Y[200:])
    assert shown.ax_.get_figure() is shown.figure_
    assert shown.ax_.get_xlabel()
    assert shown._repr_png_().startswith(b"\x89PNG")
    mean, std = gp.predict(X[200:], return_std=True)
    ax = Figure().subplots()
    same = display.from_predictions(Y[200:], mean, std, ax=ax)
    assert same.ax_ is ax
    for one, other in zip(shown.ax_.lines, ax.lines, strict=True):
        np.testing.assert_allclose(one.get_ydata(), other.get_ydata())
    with pytest.raises(InvalidInputError, match="one length"):
        display.from_predictions(Y, mean, std)


def test_the_numbers_are_the_reports(gp):
    shown = CalibrationDisplay.from_estimator(gp, X[200:], Y[200:])
    curve = CalibrationCurve.of(shown.predicted)
    np.testing.assert_array_equal(shown.ax_.lines[1].get_ydata(), curve.shares)
    residuals = ResidualsDisplay.from_estimator(gp, X[200:], Y[200:])
    np.testing.assert_array_equal(
        residuals.ax_.containers[0].lines[0].get_ydata(), ResidualGroups.of(shown.predicted).bias
    )


def test_a_rank_curve_has_a_panel_for_each_quantity(gp):
    shown = RankCurveDisplay.from_estimator(gp, X[200:], Y[200:])
    assert len(shown.axes_) == 3
    np.testing.assert_array_equal(shown.axes_[2].lines[0].get_ydata(), shown.curve.nlpd)
    assert shown._repr_png_().startswith(b"\x89PNG")
