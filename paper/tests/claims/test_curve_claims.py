"""Claims about the curve are judged over point sets, with both variances, on the paper's models."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, FAILS_IN_PART, HOLDS, MIXED, NOT_RUN, UNDECIDED
from certgp_paper.claims.finding import CURVE
from certgp_paper.claims.sample_means import all_negative
from certgp_paper.experiments.fresh_sets import FRESH_SETS
from certgp_paper.experiments.sample_means import sample_mean
from made_up_rows import results

BAND = "As r increases, the uncertainty of MGP decreases"


def judge(start, **changed):
    (claim,) = [claim for claim in CLAIMS if claim.statement.startswith(start)]
    return claim.judge(results(**changed))


@pytest.mark.parametrize(
    ("changed", "claim", "evidence"),
    [
        ({"curves": made_up.curves(mercer=0.2)}, "Mean and intervals", "DTC variance: 0.200 ± 0.0"),
        (
            {"curves": made_up.curves(fourier=0.6)},
            "The mean of FGP",
            "exact 0.500, FGP 0.600, difference +0.100 ± 0.020",
        ),
        ({"curves": made_up.curves(width=1.2)}, "FGP (r = 68) is more confident", "difference +0.200 ± 0.020"),
        ({"ranks": made_up.ranks(error=0.4)}, "FGP learns", "rank 24: RMSE where the data are 0.400, exact 0.250"),
        ({"ranks": made_up.ranks(coverage=0.5)}, "FGP performs well", "holds the function on 50% ± 2% of the grid"),
        ({"ranks": made_up.ranks(distance=0.4)}, "As r increases, the mean of MGP", "r = 34: 0.400"),
        ({"curves": made_up.curves(exact=0.4, far=0.4)}, "Exact GPs", "where the data are 0.400 ± 0.020, limit 0.354"),
        ({"ranks": made_up.ranks(width=2.0)}, BAND, "r = 4: 1.80, r = 34: 2.00"),
    ],
)
def test_claims_flip_with_the_rows(changed, claim, evidence):
    found = judge(claim, **changed)
    assert found.verdict == FAILS
    assert evidence in found.evidence


def test_the_claim_on_the_band_is_one_that_depends_on_the_variance():
    found = judge(BAND, ranks=made_up.ranks(low_rank=0.3))
    assert found.verdict == MIXED
    assert found.readings == (("DTC variance", HOLDS), ("low-rank variance", FAILS))
    assert found.depends_on == "variance"
    assert found.brief == "DTC variance: change -1.00 ± 0.00; low-rank variance: change +0.50 ± 0.00"
    assert judge(BAND).verdict == HOLDS


def test_readings_of_a_claim_are_comparisons_of_it():
    """A change that is clear alone and not as one of two."""
    rows = [row | {"width": 1.0 + (0.0 if row["rank"] == 4 else _CHANGES[row["seed"]])} for row in mercer_rows()]
    assert all_negative([_CHANGES]) == HOLDS
    assert all_negative([_CHANGES], readings=2) == UNDECIDED
    assert judge(BAND, ranks=rows).verdict == UNDECIDED


_CHANGES = [-value for value in (0.3, 0.8, 1.3, 1.8, 2.3)]  # mean -1.3, half widths .98 and 1.24
_CHANGES = [value + 0.2 for value in _CHANGES]  # mean -1.1


def mercer_rows():
    return [row for row in made_up.ranks() if row["features"] == "Mercer"]


def test_certgps_models_stand_beside_the_papers_and_decide_nothing():
    rows = made_up.curves() + [row for row in made_up.curves(fourier=0.6) if row.get("variant") == "certgp"]
    both = [row for row in rows if row.get("variant") != "certgp"] + rows[-5:]
    found = judge("The mean of FGP", curves=both)
    assert found.verdict == HOLDS
    assert (
        "; `certgp`, which decides nothing: does not hold here; `certgp`: RMSE against the function" in found.evidence
    )
    assert all(part.startswith(("`paper`", "`certgp`")) for part in found.evidence.split("; "))


def test_point_sets_that_disagree_and_few_point_sets_decide_nothing():
    assert judge("The mean of FGP", curves=made_up.curves(fourier=0.5)).verdict == UNDECIDED
    few = [row for row in made_up.curves() if row.get("seed", 0) < 4]
    assert judge("The mean of FGP", curves=few).verdict == UNDECIDED
    assert judge("The mean of FGP", curves=[]).verdict == NOT_RUN
    assert judge(BAND, ranks=[row for row in made_up.ranks() if row["rank"] == 4]).verdict == NOT_RUN


def test_fresh_point_sets_decide_alone_whether_fgp_is_accurate_and_the_first_are_shown():
    model = next(row for row in made_up.ranks() if row["features"] == "Fourier" and row["rank"] == 24)
    fresh = [model | {"seed": seed, "rmse_inputs": 0.1 + 1e-3 * (seed % 2)} for seed in FRESH_SETS]
    rows = [row for row in made_up.ranks(error=0.4) if row["rank"] != 48]
    assert judge("FGP learns", ranks=rows + fresh[:-1]).verdict == FAILS
    found = judge("FGP learns", ranks=rows + fresh)
    assert found.verdict == HOLDS
    assert found.brief.endswith("above the limit at rank 24, 20 point sets")
    first = "the first 5 point sets, which these 20 fresh ones repeat: above the limit r = 24: +0.125 ± 0.020"
    assert first in found.evidence


def test_r_may_also_be_read_as_frequencies():
    rows = [row for row in made_up.ranks(error=0.4) if row["rank"] != 48]
    accurate = made_up.point_sets(rmse_inputs=0.1, variant="paper", features="Fourier", rank=48, variance="lowrank")
    found = judge("FGP learns", ranks=rows + accurate)
    assert found.verdict == MIXED
    assert found.readings == (("rank r", FAILS), ("r frequencies", HOLDS))
    open_ = made_up.point_sets(rmse_inputs=0.275, variant="paper", features="Fourier", rank=48, variance="lowrank")
    assert judge("FGP learns", ranks=rows + open_).verdict == FAILS_IN_PART


def test_rules_name_the_start_on_which_all_claims_rest():
    of_curve = [claim for claim in CLAIMS if claim.topic == CURVE]
    assert len(of_curve) == 8
    exact, *others = of_curve
    assert all("start from the length-scale 0.2" in claim.rule for claim in others)
    assert "from the length-scale 0.2, as all models of the other claims are, and from 1" in exact.rule


def test_each_start_of_the_exact_gp_is_a_reading():
    assert judge("Exact GPs").readings == (("start 0.2", HOLDS), ("start 1", HOLDS))
    found = judge("Exact GPs", curves=made_up.curves(far=0.4))
    assert found.verdict == MIXED
    assert found.readings == (("start 0.2", HOLDS), ("start 1", FAILS))
    assert "start 1: RMSE 0.400 ± 0.020, limit 0.354, above it in 5 of 5 sets" in found.brief
    usual = [row for row in made_up.curves() if row.get("features") != "exact from 1"]
    assert judge("Exact GPs", curves=usual).readings == (("start 0.2", HOLDS), ("start 1", NOT_RUN))


def test_the_figures_own_points_are_named():
    assert "on the figure's points in 16 of 20 (0.380 against 0.500)" in judge("The mean of FGP").evidence


def test_intervals_are_students_and_corrected_for_several_comparisons():
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    # t quantiles of 4 degrees of freedom at .975 and .9875; the standard error is sqrt(2.5 / 5)
    assert sample_mean(values).half_width == pytest.approx(2.7764451 * 0.5**0.5)
    assert sample_mean(values, 2).half_width == pytest.approx(3.4954059 * 0.5**0.5)
    assert sample_mean([1.0]).half_width == float("inf")
    between = [-value - 1.0 + 1.9 for value in (0.0, 1.0, 2.0, 3.0, 4.0)]  # mean -1.1, half widths 1.96 and 2.47
    shifted = [value - 1.1 for value in between]
    assert all_negative([shifted]) == HOLDS
    assert all_negative([shifted, shifted]) == UNDECIDED
    assert all_negative([[-1.0] * 5, [1.0] * 5]) == FAILS
    assert all_negative([[-1.0, -1.1, -1.2, -1.3]]) == UNDECIDED  # four point sets are too few
