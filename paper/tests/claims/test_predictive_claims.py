"""Claims about predictions: one exception refutes what always holds, too many draws what holds with probability .9."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED
from made_up_rows import results

DENSITIES, MOMENTS = "The bounds on the KL hold for predictive", "A small KL bounds the error"


def judge(start, rows):
    (claim,) = [claim for claim in CLAIMS if claim.statement.startswith(start)]
    return claim.judge(results(predictive=rows))


def changed(seed, **figures):
    return [
        row | (figures if row["seed"] == seed and row["method"] == "mercer" else {}) for row in made_up.predictive()
    ]


def test_both_hold_and_say_how_tight_they_are():
    densities, moments = judge(DENSITIES, made_up.predictive()), judge(MOMENTS, made_up.predictive())
    assert densities.verdict == moments.verdict == HOLDS
    assert densities.brief == (
        "10 of 10 expectations below the KL of all rows, which is 5 times as large in the median; 30 of 2,000 draws "
        "above KL / 0.1; 5 point sets"
    )
    assert moments.brief == (
        "means within in 2,000 of 2,000 draws, bound 1.03 times the distance in the median; covariances in 2,000, "
        "12 times; 5 point sets"
    )
    assert "differs from the expectation by 1e-13 nats at most" in densities.evidence
    assert "which is 25 (25 to 25) times the KL that 90 % of the draws stay below" in densities.evidence


@pytest.mark.parametrize(
    ("claim", "figures"),
    [(DENSITIES, {"kl_expected": 0.51}), (MOMENTS, {"means_far": 1}), (MOMENTS, {"covariances_outside": 200})],
)
def test_one_exception_refutes_what_always_holds(claim, figures):
    assert judge(claim, changed(3, **figures)).verdict == FAILS
    other = MOMENTS if claim == DENSITIES else DENSITIES
    assert judge(other, changed(3, **figures)).verdict == HOLDS


@pytest.mark.parametrize(("claim", "key"), [(DENSITIES, "kl_above"), (MOMENTS, "moments_above")])
def test_more_draws_than_chance_allows_refute_markovs_bound(claim, key):
    """Of 1,000 draws of a group 100 are allowed; 120 have a chance of 2 %, 125 of .6 %, two groups each 2.5 %."""
    assert judge(claim, made_up.predictive(above=20)).verdict == HOLDS
    assert judge(claim, [row | {key: 24} for row in made_up.predictive()]).verdict == FAILS
    assert judge(claim, [row | {key: 23} for row in made_up.predictive()]).verdict == HOLDS
    assert judge(claim, changed(2, **{key: 200})).verdict == FAILS


@pytest.mark.parametrize("claim", [DENSITIES, MOMENTS])
def test_few_point_sets_decide_nothing_but_an_exception(claim):
    few = [row for row in made_up.predictive() if row["seed"] < 4]
    assert judge(claim, few).verdict == UNDECIDED
    assert judge(claim, [row | {"kl_expected": 0.6, "means_far": 1} for row in few]).verdict == FAILS
    assert judge(claim, []).verdict == NOT_RUN


def test_divergences_within_rounding_are_not_counted():
    tiny = {"kl_total": 5e-8, "kl_median": 1e-8, "kl_expected": 6e-8, "means_far": 9, "kl_ratio": None}
    for claim in (DENSITIES, MOMENTS):
        found = judge(claim, changed(1, **tiny))
        assert found.verdict == HOLDS
        assert found.evidence.endswith("not counted: 1 divergences within rounding")
        assert judge(claim, [row | tiny for row in made_up.predictive()]).verdict == UNDECIDED
    assert judge(DENSITIES, changed(1, kl_expected=0.5 + 5e-8)).verdict == HOLDS
