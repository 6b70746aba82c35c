"""Certificates in words: the sentence fits the numbers, useless bounds are called useless, and the shift is a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certgp.guarantees import Certificate, Interval, RankCurve, Yardstick, explain, gaussian_kl, rank_for
from certgp.guarantees.words import percent, tolerance_for

LAW = Certificate(Interval(0.0, 8e-6 * 1_000), None, 1_000, "K2 (sharpened trace bound)", {}, ())
SCALES = Yardstick(noise=2.0, prior=10.0, target="price")


def rows(errors: list[float], **more: object) -> Certificate:
    found = np.array(errors)
    return replace(LAW, mean_error=found, mean_error_lower=np.zeros(len(found)), **more)


def one_step_ahead(covariance: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each y given those before it, by dense algebra; y (n, draws)."""
    L = np.linalg.cholesky(covariance)
    innovations = np.linalg.solve(L, y)
    return y - np.diag(L)[:, None] * innovations, np.diag(L) ** 2


@pytest.mark.parametrize("seed", range(4))
def test_the_typical_shift_bounds_means_of_one_step_predictions(seed):
    """The expectation over y is exact: E (m - m')^2 is a quadratic form of the covariance of y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(40)
    exact = np.exp(-0.5 * np.subtract.outer(X, X) ** 2) + 0.1 * np.eye(40)
    values, vectors = np.linalg.eigh(exact - 0.1 * np.eye(40))
    kept = 4 + seed
    model = (vectors[:, -kept:] * values[-kept:]) @ vectors[:, -kept:].T + 0.1 * np.eye(40)
    certificate = replace(LAW, kl=Interval(0.0, gaussian_kl(exact, model)), n_rows=40)
    draws = np.linalg.cholesky(exact)  # E z z' = I: its columns stand for y, summed
    mean, _ = one_step_ahead(exact, draws)
    other, variance = one_step_ahead(model, draws)
    typical = np.sqrt(np.mean(((mean - other) ** 2).sum(1) / variance))
    assert 0.0 < typical <= certificate.typical_shift


def test_a_small_divergence_is_told_in_percent_of_the_uncertainty_and_in_units():
    told = explain(LAW, SCALES)
    assert told.verdict == "negligible"
    assert "at most 0.4 % of its own standard deviation: 0.008 in the units of price" in told.meaning[0]
    assert "does not say that the exact GP is right for your data" in told.limits[0]
    assert "nats" not in " ".join((*told.meaning, *told.limits))
    assert any("nats" in value for _, value in told.numbers)
    assert told.text().startswith(told.meaning[0])


def test_measured_coverage_stands_beside_it():
    told = explain(LAW, replace(SCALES, coverage=0.948))
    assert told.limits[0].endswith("94.8 % of them lie in their 95 % interval.")


def test_bounds_on_rows_are_compared_with_the_noise():
    told = explain(rows([0.002, 0.008]), SCALES)
    assert told.verdict == "negligible"
    assert (
        "no prediction on these 2 rows by more than 0.4 % of the noise: 0.008 in the units of price" in told.meaning[0]
    )
    assert explain(rows([0.8]), SCALES).verdict == "small"
    assert explain(rows([1.8]), SCALES).verdict == "noticeable"
    assert explain(rows([0.0]), SCALES).verdict == "exact"
    apart = explain(replace(rows([1.8]), mean_error_lower=np.array([1.5])), SCALES)
    assert "on 1 of 1 rows it is proven that the two differ by more than half of it" in apart.meaning[1]


def test_one_strange_row_does_not_speak_for_all():
    told = explain(rows([0.002, 0.008, 3.8]), SCALES)
    assert told.verdict == "noticeable"
    assert "On 2 of the 3 rows it is at most 0.008, 0.4 % of the noise." in told.meaning[1]


def test_useless_bounds_are_called_useless_and_say_what_helps():
    told = explain(rows([4.38e3, 0.1, 11.0]), SCALES)
    assert told.verdict == "useless"
    assert "useless on 2 of these 3 rows: it allows errors of up to 4.38e+03, more than the 10" in told.meaning[0]
    assert "On the other 1 it is at most 0.1, 5 % of the noise." in told.meaning[1]
    assert "--train FILE --tol 0.2" in told.remedy
    through = explain(rows([4.38e3], evidence={"reference_rank": 400.0}), SCALES)
    assert "--exact-solve --tol 0.2" in through.remedy
    law = explain(replace(LAW, kl=Interval(0.0, 2e3)), SCALES)
    assert law.verdict == "useless"
    assert "2 times their own standard deviation" in law.meaning[0]


def test_a_model_that_is_proven_to_be_far_is_called_far():
    told = explain(replace(LAW, kl=Interval(2e3, 2.2e3)), SCALES)
    assert told.verdict == "far"
    assert "density at least 7.39 times too small" in told.meaning[0]


def test_uncertainty_that_is_approximation_is_told():
    latent = np.full(3, 4.0)  # beside a noise variance of 4
    scales = replace(SCALES, latent_variance=latent, curve=power_law(100))
    half = rows([0.01] * 3, variance_lower=np.zeros(3), variance_upper=np.full(3, 0.04))
    told = explain(half, scales).meaning[-1]
    assert told.startswith("At least 50 % of the variance you see on a typical row is approximation")
    assert "Raise the rank to about 200." in told
    fine = replace(half, variance_lower=np.full(3, 3.9), variance_upper=np.full(3, 4.0))
    assert "at most 1.3 % of their variance is approximation" in explain(fine, scales).meaning[-1]
    unknown = replace(fine, variance_upper=np.full(3, 8.0))
    assert "the variance with the exact GP may be up to 50 % larger" in explain(unknown, scales).meaning[-1]
    narrow = replace(half, variance_lower=np.full(3, 8.0), variance_upper=np.full(3, 9.0))
    assert "too narrow" in explain(narrow, scales).meaning[-1]


def power_law(rank: int) -> RankCurve:
    """A bound per row of 0.08 (100 / k)^4, which is 0.005 at k = 200."""
    ranks = np.arange(1, rank + 1)
    return RankCurve(ranks, np.zeros(rank), None, 0.08 * (100.0 / ranks) ** 4 * 1_000, 1_000)


def test_the_rank_that_is_needed_is_read_off_or_drawn_on():
    assert rank_for(power_law(300)) == 200
    assert rank_for(power_law(100)) == pytest.approx(200, abs=10)
    assert rank_for(power_law(20)) is None  # ten times as far is no advice
    assert rank_for(None) is None


def test_numbers_as_people_write_them():
    assert [percent(share) for share in (0.5, 0.0042, 1e-6)] == ["50 %", "0.42 %", "0.01 %"]
    assert tolerance_for(SCALES) == 0.2
