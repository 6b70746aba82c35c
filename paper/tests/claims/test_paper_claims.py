"""Claims hold, fail or wait by what the rows say."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED
from certgp_paper.claims.paired import all_lower, paired_difference
from certgp_paper.claims.sizes import marginal_gain
from certgp_paper.experiments.results import Result
from made_up_rows import results

ALL_BASELINES = "DMGP and DFGP outperform all sparse and deep GP baselines (SVIGP, SGPR, DKL, RFEDGP)"


def verdicts(found):
    return {claim.statement: claim.judge(found) for claim in CLAIMS}


def the(start):
    (statement,) = [claim.statement for claim in CLAIMS if claim.statement.startswith(start)]
    return statement


def test_all_claims_hold_on_rows_that_agree_with_the_paper():
    for statement, finding in verdicts(results()).items():
        assert finding.verdict == HOLDS, (statement, finding.evidence)
        assert any(character.isdigit() for character in finding.evidence)


def test_nothing_is_decided_without_rows():
    empty = {name: Result("", []) for name in made_up.everything()}
    strange = {name: Result("", [{"colour": "blue", "rank": None}]) for name in made_up.everything()}
    for found in ({}, empty, strange):
        assert {finding.verdict for finding in verdicts(found).values()} == {NOT_RUN}


@pytest.mark.parametrize(
    ("changed", "claim", "evidence"),
    [
        (
            {"figure1": made_up.figure1(fourier=2)},
            "Mercer approximations need",
            "N = 500: lower in 0 of 5 runs, equal in 5 (D = 1: 2 against 2)",
        ),
        (
            {"figure1": made_up.figure1(fourier=100)},
            "Gaussian kernels need a lower rank than Matern kernels, random",
            "100",
        ),
        ({"figure1": made_up.figure1(fourier=50)}, "The rank that a theorem", "10 of 15 promised ranks"),
        ({"figure2": made_up.figure2(upper=0.1)}, "The divergence stays within", "15 of 20 bounds hold"),
        ({"table_nlpd": made_up.linear(mgp=0.60)}, "MGP behaves like SGPR", "MGP 0.159, FGP 0.079"),
        ({"table_nlpd": made_up.linear(mgp=0.53)}, "FGP is slightly inferior", "in 0 of 1 cells"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in NLPD", "difference +0.010 ± 0.000"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in RMSE", "best other SGPR+ 0.420"),
        ({"table_deep": made_up.deep(DMGP=0.42)}, "DMGP and DFGP outperform simple DNN", "DMGP 0.420, DNN+S 0.410"),
        ({"table_deep": made_up.deep(DNN_M=0.35)}, "Joint training", "DMGP 0.360, DNN+M 0.350, difference +0.010 ±"),
        ({"table_deep": made_up.deep(DNN_S=0.39)}, "The non-parametric", "DNN+M 0.400, DNN+S 0.390"),
        (
            {"table_deep": made_up.deep(DFGP=0.40)},
            "DMGP and DFGP outperform the exact GP",
            "DFGP 0.400, difference +0.0",
        ),
        (
            {"sensitivity": made_up.sensitivity(best=0.83)},
            "Large d and r offer only",
            "0.030 from d = 1, rank 16 to d = 2, rank 64",
        ),
        ({"electric": made_up.electric(part=0.31)}, "DMGP and DFGP reach equal", "no part of the rows suffices"),
    ],
)
def test_claims_flip_with_the_rows(changed, claim, evidence):
    finding = verdicts(results(**changed))[the(claim)]
    assert finding.verdict == FAILS
    assert evidence in finding.evidence


def test_a_rank_tried_in_vain_counts_as_higher():
    finding = verdicts(results(figure1=made_up.figure1(fourier=None)))[the("Mercer approximations need")]
    assert finding.verdict == HOLDS
    assert "2 against more than 1000" in finding.evidence


def test_a_rank_tried_in_vain_loses_against_one_that_was_found():
    rows = [row | {"rank": None, "more_than": 1000} if row["method"] == "mercer" else row for row in made_up.figure1()]
    found = verdicts(results(figure1=rows))
    assert found[the("Mercer approximations need")].verdict == FAILS
    assert found[the("The rank that a theorem")].verdict == FAILS  # 12 were promised, 1,000 do not suffice


def test_methods_are_compared_on_the_splits_they_share():
    """On the first two splits DMGP is worse than SGPR+, though its mean over five is better."""
    hard = {"nlpd_split_0": 0.43, "nlpd_split_1": 0.43}
    missing = {f"nlpd_split_{split}": None for split in (2, 3, 4)}
    rows = [row | (hard if row["method"] == "DMGP" else missing) for row in made_up.deep()]
    found = verdicts(results(table_deep=rows))
    beaten = found[the(f"{ALL_BASELINES} in NLPD")]
    assert beaten.verdict == FAILS
    gaps = "difference +0.010 ± 0.000 and -0.070 ± 0.000"
    assert beaten.evidence == f"elevators: DMGP 0.430, DFGP 0.350, best other SGPR+ 0.420, {gaps} (2 splits)"
    assert found[the("Joint training beats two steps")].verdict == FAILS
    nothing_shared = [row | (missing if row["method"] == "DMGP" else dict.fromkeys(hard)) for row in made_up.deep()]
    found = verdicts(results(table_deep=nothing_shared))
    assert found[the(f"{ALL_BASELINES} in NLPD")].verdict == NOT_RUN


def test_nothing_is_said_on_part_of_the_evidence():
    some = [row for row in made_up.linear() if row["variant"] == "certgp"]
    other_splits = [row | {"splits": 2} if row["method"] == "MGP" else row for row in made_up.linear()]
    for rows in (some, other_splits):
        assert verdicts(results(table_nlpd=rows))[the("FGP is slightly inferior")].verdict == NOT_RUN
    few = [row for row in made_up.deep() if row["method"] in ("DMGP", "DFGP", "SGPR+")]
    assert verdicts(results(table_deep=few))[the(f"{ALL_BASELINES} in NLPD")].verdict == NOT_RUN


def test_a_claim_about_tables_has_to_hold_in_every_variant():
    worse = [row | {"variant": "released"} for row in made_up.linear(mgp=0.55) if row["variant"] == "paper"]
    rows = made_up.linear() + worse
    finding = verdicts(results(table_nlpd=rows))[the("FGP is slightly inferior")]
    assert finding.verdict == FAILS
    assert "paper: MGP lower in 1 of 1" in finding.evidence
    assert "released: MGP lower in 0 of 1" in finding.evidence


def test_a_difference_within_its_noise_decides_nothing():
    assert all_lower([paired_difference([1.0, 2.0], [1.5, 2.6])]) == HOLDS
    assert all_lower([paired_difference([1.5, 2.6], [1.0, 2.0])]) == FAILS
    assert all_lower([paired_difference([1.0, 2.0], [0.9, 2.2])]) == UNDECIDED
    assert all_lower([paired_difference([1.0], [2.0])]) == UNDECIDED  # a single split has no noise to judge by
    one_of_two = [paired_difference([1.0, 2.0], [1.5, 2.6]), paired_difference([1.0, 2.0], [0.9, 2.2])]
    assert all_lower(one_of_two) == UNDECIDED
    assert paired_difference([1.0, 2.0], [1.5, 2.6]).text(2) == "-0.55 ± 0.05"
    assert paired_difference([1.0], [2.0]).text(1) == "-1.0 ± ?"


def test_joint_training_is_undecided_where_splits_disagree():
    noisy = {"nlpd_split_0": 0.42, "nlpd_split_1": 0.37, "nlpd_split_2": None, "nlpd_split_3": None}
    rows = [row | (noisy | {"nlpd_split_4": None} if row["method"] == "DMGP" else {}) for row in made_up.deep()]
    finding = verdicts(results(table_deep=rows))[the("Joint training")]
    assert finding.verdict == UNDECIDED
    assert "DMGP 0.395, DNN+M 0.400, difference -0.005 ± 0.025 (2 splits)" in finding.evidence


def test_speed_is_judged_by_cpu_seconds():
    """Wall clocks of DMGP and DFGP are the longer ones here."""
    slow = [row | ({"seconds": 500.0} if row["method"] in ("DMGP", "DFGP") else {}) for row in made_up.deep()]
    finding = verdicts(results(table_deep=slow))[the(f"{ALL_BASELINES} in speed")]
    assert finding.verdict == HOLDS
    assert "DMGP 9, DFGP 9, best other SVIGP 45 CPU seconds, difference -36 ± 0" in finding.evidence
    without = [{key: value for key, value in row.items() if not key.startswith("cpu")} for row in made_up.deep()]
    assert verdicts(results(table_deep=without))[the(f"{ALL_BASELINES} in speed")].verdict == NOT_RUN


def test_figure_1_is_judged_at_the_largest_n_and_the_others_are_named():
    tie = [row | {"N": 100} for row in made_up.figure1(fourier=2) if row["method"] != "rates"]
    finding = verdicts(results(figure1=tie + made_up.figure1()))[the("Mercer approximations need")]
    assert finding.verdict == HOLDS
    assert finding.evidence == (
        "N = 500: lower in 5 of 5 runs (D = 1: 2 against 6); N = 100: lower in 0 of 5 runs, equal in 5"
    )
    lower = verdicts(results(figure1=[row | {"N": 900} for row in tie] + made_up.figure1()))
    assert lower[the("Mercer approximations need")].verdict == FAILS


def test_figure_2_names_its_n():
    other = [row | {"N": 100} for row in made_up.figure2()]
    finding = verdicts(results(figure2=other + made_up.figure2()))[the("At equal rank, random features")]
    shown = "lower at 5 of 5 ranks and point sets, 5 of these (r = 4: 0.1 against 0.2; "
    assert finding.evidence.startswith(f"N = 500: {shown}")
    assert f"N = 100: {shown}" in finding.evidence


def test_the_size_nearest_to_the_papers_choice_is_the_base():
    """DFGP: d = 3 of the grid, and rank 32."""
    sizes = [(1, 16, 0.9), (3, 2, 0.8), (3, 16, 0.71), (3, 32, 0.70)]
    rows = [{"data": "protein", "method": "DFGP", "d": d, "m": m, "nlpd": nlpd} for d, m, nlpd in sizes]
    finding = verdicts(results(sensitivity=rows))[the("Large d and r offer only")]
    assert finding.verdict == HOLDS
    assert finding.evidence == "protein DFGP: 0.010 from d = 3, rank 32 to d = 3, rank 64"


def test_a_smaller_size_that_is_better_says_nothing_about_larger_ones():
    sizes = [(1, 2, 0.1), (3, 2, 0.3), (3, 16, 0.7), (3, 32, 0.72)]
    rows = [{"data": "protein", "method": "DFGP", "d": d, "m": m, "nlpd": nlpd} for d, m, nlpd in sizes]
    finding = verdicts(results(sensitivity=rows))[the("Large d and r offer only")]
    assert (finding.verdict, finding.evidence) == (HOLDS, "protein DFGP: nothing over d = 3, rank 32")


@pytest.mark.parametrize(("fourier", "verdict"), [(80.0, HOLDS), (98.0, UNDECIDED), (120.0, FAILS)])
def test_times_that_are_nearly_equal_decide_nothing(fourier, verdict):
    rows = [
        {"data": "3droad", "method": method, "fraction": 1.0, "baseline": False, "nlpd": 0.5, "cpu_seconds": seconds}
        for method, seconds in (("DFGP", fourier), ("DMGP", 100.0))
    ]
    assert verdicts(results(electric=rows))[the("DFGP scales")].verdict == verdict


def test_marginal_is_what_the_paper_calls_so():
    """Elevators, DMGP: .371 at d = 1, .351 at d = 2."""
    assert marginal_gain() == pytest.approx(0.020)
