"""What a model of log(y) says of y: density, moments and quantiles against quadrature and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from certgp.gp import Mixture
from certgp.gp.log_mixture import LogMixture
from certgp.report import Predicted

MIXTURE = Mixture(np.array([[0.3, -1.0], [1.1, 2.0]]), np.array([[0.2, 0.5], [0.1, 0.05]]), np.array([0.7, 0.3]))
LAW = LogMixture(MIXTURE)


def density(y: float, row: int) -> float:
    return float(np.exp(LAW.log_density(np.full(2, y))[row]))


@pytest.mark.parametrize("row", [0, 1])
def test_density_and_moments_agree(row) -> None:
    total, mean = (quad(lambda y, k=k: y**k * density(y, row), 0.0, 200.0, limit=300)[0] for k in (0, 1))
    found, variance = LAW.moments()
    square = quad(lambda y: (y - found[row]) ** 2 * density(y, row), 0.0, 200.0, limit=300)[0]
    np.testing.assert_allclose([total, mean, square], [1.0, found[row], variance[row]], rtol=1e-6)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("y", [0.4, 3.0])
def test_the_ranked_probability_score_is_the_integral_of_the_squared_cdf(row, y) -> None:
    low = quad(lambda t: LAW.cdf(np.full(2, t))[row] ** 2, 0.0, y, limit=200)[0]
    high = quad(lambda t: (1.0 - LAW.cdf(np.full(2, t))[row]) ** 2, y, 200.0, limit=300)[0]
    np.testing.assert_allclose(LAW.crps(np.full(2, y))[row], low + high, rtol=1e-6)
    below = LAW.crps(np.array([0.0, 0.0])) + 2.0  # no probability there: it grows with the distance
    np.testing.assert_allclose(LAW.crps(np.array([-2.0, -2.0])), below, rtol=1e-12)


def test_quantiles_invert_the_cdf_and_one_component_is_log_normal() -> None:
    levels = np.array([0.05, 0.5, 0.9])
    for level, y in zip(levels, LAW.quantiles(levels).T, strict=True):
        np.testing.assert_allclose(LAW.cdf(y), level, rtol=1e-9)
    alone, known = (
        LogMixture(Mixture(np.array([[0.4]]), np.array([[0.25]]), np.ones(1))),
        lognorm(0.5, scale=np.exp(0.4)),
    )
    np.testing.assert_allclose(alone.log_density(np.array([1.7])), known.logpdf(1.7), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(alone.moments()), [known.mean(), known.var()], rtol=1e-12)
    one = Predicted.gaussian("g", np.log([1.7]), np.array([0.4]), np.array([0.5])).exponential()
    np.testing.assert_allclose([one.mean[0], one.std[0] ** 2], [known.mean(), known.var()], rtol=1e-12)
    np.testing.assert_allclose([one.log_density[0], one.y[0]], [known.logpdf(1.7), 1.7], rtol=1e-12)
    np.testing.assert_allclose(one.z, (np.log(1.7) - 0.4) / 0.5, rtol=1e-9)  # as normal as its logarithm


def test_what_is_not_positive_has_no_density() -> None:
    assert np.isneginf(LAW.log_density(np.array([0.0, -1.0]))).all()
    assert (LAW.cdf(np.array([0.0, -1.0])) == 0.0).all()
