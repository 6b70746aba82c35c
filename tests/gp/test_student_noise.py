"""Student-t noise as a finite mixture, and the weights that it gives rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from certgp.gp.mixture import Mixture
from certgp.gp.noise import NoiseInputs, nothing
from certgp.gp.student import StudentNoise, second_moments, student_weights

NUS = [2.5, 4.0, 20.0]


@pytest.mark.parametrize("nu", NUS)
def test_nodes_reproduce_the_t_far_into_its_tails(nu: float) -> None:
    noise = StudentNoise(nu, 0.49)
    r = np.array([0.0, 0.3, 1.0, 5.0, 50.0])
    found = noise.log_density(r, np.zeros(len(r)))
    np.testing.assert_allclose(found, stats.t(nu, scale=0.7).logpdf(r), atol=1e-5)
    assert noise.nodes[1].sum() == pytest.approx(1.0)
    expected = 0.49 * nu / (nu - 2.0)
    rows = NoiseInputs(nothing(3), *(torch.zeros(3).double(),) * 2, *(nothing(3),) * 3)
    assert float(noise.at(rows).variance) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("nu", NUS)
def test_density_and_quantiles_with_latent_variance(nu: float) -> None:
    noise, t = StudentNoise(nu, 0.25), stats.t(nu, scale=0.5)

    def density(x: float) -> float:
        return integrate.quad(lambda f: t.pdf(x - f) * stats.norm(0, 0.3).pdf(f), -2, 2)[0]

    at = np.array([0.1, 1.0, 4.0])
    found = noise.log_density(at, np.full(3, 0.09))
    np.testing.assert_allclose(np.exp(found), [density(x) for x in at], rtol=1e-5)
    precisions, shares = noise.nodes
    mixture = Mixture(np.zeros((len(shares), 1)), (0.0 + 0.25 / precisions)[:, None], shares)
    np.testing.assert_allclose(mixture.quantiles(np.array([0.025, 0.5, 0.9])), [t.ppf([0.025, 0.5, 0.9])], atol=1e-4)


def test_weights_are_a_maximum_of_the_bound() -> None:
    """E l_i is the mean of the best q(l_i), which is a gamma law."""
    nu, s2 = 4.0, 0.3
    e = torch.tensor([0.0, 0.3, 30.0], dtype=torch.float64)
    found = student_weights(e, s2, nu)
    np.testing.assert_allclose(found, (nu + 1.0) / (nu + e / s2))
    posterior = [stats.gamma(0.5 * (nu + 1.0), scale=1.0 / (0.5 * (nu + float(x) / s2))).mean() for x in e]
    np.testing.assert_allclose(found, posterior)


def test_second_moments_from_rows_predicted_without_themselves() -> None:
    """f ~ N(m, v), y = f + noise: the posterior of f given y, by Bayes' rule."""
    r, v, s2 = torch.tensor([1.5, -0.2]).double(), torch.tensor([0.4, 2.0]).double(), 0.3
    mean, variance = v / (v + s2) * r, v * s2 / (v + s2)  # of f - m
    np.testing.assert_allclose(second_moments(r, v, s2), (r - mean).square() + variance)


def test_a_further_row_is_weighed_by_how_far_it_is() -> None:
    noise = StudentNoise(3.0, 0.01)
    found = noise.weigh(torch.tensor([0.0, 0.1, 5.0]).double(), torch.full((3,), 0.01).double(), torch.ones(3).double())
    assert found[0] > found[1] > 100 * found[2]
