"""Claims about the curve are judged over point sets, with both variances, on the paper's models."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED
from certgp_paper.claims.curves import CLAIMS
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
        ({"curves": made_up.curves(mercer=0.2)}, "MGP leads to", "DTC variance 0.200 ± 0.0"),
        (
            {"curves": made_up.curves(fourier=0.6)},
            "The mean of FGP",
            "exact 0.500, FGP 0.600, difference +0.100 ± 0.020",
        ),
        ({"curves": made_up.curves(width=1.2)}, "FGP (r = 68) is more confident", "difference +0.200 ± 0.020"),
        ({"ranks": made_up.ranks(error=0.4)}, "FGP learns", "r = 24: 0.400, exact 0.250"),
        ({"ranks": made_up.ranks(coverage=0.5)}, "FGP performs well", "holds the function on 50% ± 2% of the grid"),
        ({"ranks": made_up.ranks(distance=0.4)}, "As r increases, the mean of MGP", "r = 34: 0.400"),
        ({"ranks": made_up.ranks(width=2.0)}, f"{BAND} (DTC", "r = 4: 1.80; r = 34: 2.00"),
    ],
)
def test_claims_flip_with_the_rows(changed, claim, evidence):
    found = judge(claim, **changed)
    assert found.verdict == FAILS
    assert evidence in found.evidence


def test_the_verdict_on_the_band_names_the_variance_it_depends_on():
    rows = made_up.ranks(low_rank=0.3)
    dtc, low = judge(f"{BAND} (DTC", ranks=rows), judge(f"{BAND} (low-rank", ranks=rows)
    assert (dtc.verdict, low.verdict) == (HOLDS, FAILS)
    assert (
        "The verdict depends on the variance: with the low-rank variance the claim does not hold here" in dtc.evidence
    )
    assert "with the DTC variance the claim holds" in low.evidence
    assert "depends" not in judge(f"{BAND} (DTC").evidence


def test_certgps_models_stand_beside_the_papers_and_decide_nothing():
    rows = made_up.curves() + [row for row in made_up.curves(fourier=0.6) if row.get("variant") == "certgp"]
    both = [row for row in rows if row.get("variant") != "certgp"] + rows[-5:]
    found = judge("The mean of FGP", curves=both)
    assert found.verdict == HOLDS
    assert (
        "With certgp's models: does not hold here; RMSE against the function: exact 0.500, FGP 0.600" in found.evidence
    )


def test_point_sets_that_disagree_and_few_point_sets_decide_nothing():
    assert judge("The mean of FGP", curves=made_up.curves(fourier=0.5)).verdict == UNDECIDED
    few = [row for row in made_up.curves() if row.get("seed", 0) < 4]
    assert judge("The mean of FGP", curves=few).verdict == UNDECIDED
    assert judge("The mean of FGP", curves=[]).verdict == NOT_RUN
    assert judge(f"{BAND} (DTC", ranks=[row for row in made_up.ranks() if row["rank"] == 4]).verdict == NOT_RUN


def test_fresh_point_sets_decide_alone_whether_fgp_is_accurate():
    (model,) = [row for row in made_up.ranks(error=0.4) if row["features"] == "Fourier" and row["rank"] == 24][:1]
    fresh = [model | {"seed": seed, "rmse_inputs": 0.1 + 1e-3 * (seed % 2)} for seed in FRESH_SETS]
    assert judge("FGP learns", ranks=made_up.ranks(error=0.4) + fresh[:-1]).verdict == FAILS
    found = judge("FGP learns", ranks=made_up.ranks(error=0.4) + fresh)
    assert found.verdict == HOLDS
    assert found.brief.endswith("above the limit, 20 point sets")


def test_r_may_also_be_read_as_frequencies():
    accurate = made_up.point_sets(rmse_inputs=0.1, variant="paper", features="Fourier", rank=48, variance="lowrank")
    found = judge("FGP learns", ranks=made_up.ranks(error=0.4) + accurate)
    assert found.verdict == FAILS
    assert "With r read as frequencies, of rank 2 r: holds; RMSE where the data are: r = 48: 0.100" in found.evidence


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
