"""Claims about the tables: on splits that methods share, in every variant, undecided where the data do not decide."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, MIXED, NOT_RUN, UNDECIDED
from certgp_paper.claims.sizes import marginal_gain
from made_up_rows import by_split, results

ALL_BASELINES = "DMGP and DFGP outperform all sparse and deep GP baselines"


def judged(start, **changed):
    """The finding about the claim that begins so."""
    (claim,) = [claim for claim in CLAIMS if claim.statement.startswith(start)]
    return claim.judge(results(**changed))


def as_paper(rows):
    """DMGP and DFGP of the paper's variant."""
    return [row | {"variant": "paper"} for row in rows if row["method"] in ("DMGP", "DFGP")]


@pytest.mark.parametrize(
    ("changed", "claim", "evidence"),
    [
        ({"table_nlpd": made_up.linear(mgp=0.60)}, "MGP behaves like SGPR", "MGP 0.159, FGP 0.079"),
        ({"table_nlpd": made_up.linear(mgp=0.53)}, "FGP is slightly inferior", "lower in 0 of 1 cells"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in NLPD", "difference +0.010 ± 0.000"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in RMSE", "DMGP 0.430, SGPR+ 0.420"),
        ({"table_deep": made_up.deep(DMGP=0.42)}, "DMGP and DFGP outperform simple DNN", "DMGP 0.420, DNN+S 0.410"),
        ({"table_deep": made_up.deep(DNN_M=0.35)}, "Joint training", "DMGP 0.360, DNN+M 0.350, difference +0.010 ±"),
        ({"table_deep": made_up.deep(DNN_S=0.39)}, "The non-parametric", "DNN+M 0.400, DNN+S 0.390"),
        ({"table_deep": made_up.deep(DFGP=0.40)}, "DMGP and DFGP outperform the exact", "DFGP 0.400, exact GP 0.379"),
        ({"sensitivity": made_up.sensitivity(best=0.83)}, "Large d and r offer", "+0.030 from d = 1, rank 16 to d = 2"),
    ],
)
def test_claims_flip_with_the_rows(changed, claim, evidence):
    assert judged(claim).verdict == HOLDS
    finding = judged(claim, **changed)
    assert finding.verdict == FAILS
    assert evidence in finding.evidence


def test_methods_are_compared_on_the_splits_they_share():
    """On the first two splits DMGP is worse than SGPR+, though its mean over five is better; two decide nothing."""
    hard = {"nlpd_split_0": 0.43, "nlpd_split_1": 0.43}
    missing = {f"nlpd_split_{split}": None for split in (2, 3, 4)}
    rows = [row | (hard if row["method"] == "DMGP" else missing) for row in made_up.deep()]
    beaten = judged(f"{ALL_BASELINES} in NLPD", table_deep=rows)
    assert beaten.verdict == UNDECIDED
    assert "elevators: DMGP 0.430, SGPR+ 0.420, difference +0.010 ± 0.000 (2 splits)" in beaten.evidence
    assert "0 of 14 clear, 13 more lean so, 14 with too few runs" in beaten.evidence
    nothing_shared = [row | (missing if row["method"] == "DMGP" else dict.fromkeys(hard)) for row in made_up.deep()]
    only_fourier = judged("Joint training", table_deep=nothing_shared)
    assert "DMGP" not in only_fourier.evidence


def test_nothing_is_said_on_part_of_the_evidence():
    few = [row for row in made_up.deep() if row["method"] in ("DMGP", "DFGP", "SGPR+")]
    assert judged(f"{ALL_BASELINES} in NLPD", table_deep=few).verdict == NOT_RUN
    without = [{key: value for key, value in row.items() if not key.startswith("cpu")} for row in made_up.deep()]
    assert judged(f"{ALL_BASELINES} in speed", table_deep=without).verdict == NOT_RUN
    assert judged("DMGP and DFGP outperform the exact", exact_gp=[]).verdict == NOT_RUN


def test_cells_with_fewer_splits_are_left_out_and_counted():
    rows = made_up.linear()
    rows += [row | {"data": "3droad", "nlpd_split_4": None} for row in made_up.linear(mgp=0.9)]
    finding = judged("FGP is slightly inferior", table_nlpd=rows)
    assert finding.verdict == HOLDS
    assert "lower in 1 of 1 cells; 1 cells with fewer splits are left out" in finding.evidence
    assert "in the paper mean NLPD: MGP 0.430, FGP 0.530" in finding.evidence


def test_linear_claims_are_judged_in_both_variants():
    worse = [row for row in made_up.linear(mgp=0.55) if row["variant"] == "paper"]
    rows = [row for row in made_up.linear() if row["variant"] == "certgp"] + worse
    finding = judged("FGP is slightly inferior", table_nlpd=rows)
    assert finding.verdict == MIXED
    assert finding.variants == (("certgp", HOLDS), ("paper", FAILS))


@pytest.mark.parametrize("claim", [f"{ALL_BASELINES} in NLPD", "DMGP and DFGP outperform simple", "Joint training"])
def test_deep_claims_are_judged_in_both_variants(claim):
    alone = judged(claim)
    assert alone.verdict == HOLDS
    assert alone.variants == (("certgp", HOLDS), ("paper", NOT_RUN))
    both = judged(claim, table_deep=made_up.deep() + as_paper(made_up.deep()))
    assert both.variants == (("certgp", HOLDS), ("paper", HOLDS))
    worse = judged(claim, table_deep=made_up.deep() + as_paper(made_up.deep(DMGP=0.5)))
    assert worse.verdict == MIXED
    assert worse.variants == (("certgp", HOLDS), ("paper", FAILS))


def test_joint_training_is_undecided_where_splits_disagree():
    noisy = {f"nlpd_split_{split}": 0.42 if split % 2 else 0.37 for split in range(5)}
    rows = [row | (noisy if row["method"] == "DMGP" else {}) for row in made_up.deep()]
    finding = judged("Joint training", table_deep=rows)
    assert finding.verdict == UNDECIDED
    assert "DMGP 0.390, DNN+M 0.400, difference -0.010 ± 0.015 (5 splits)" in finding.evidence
    assert finding.brief == "certgp 1 of 2 clear, 1 more lean so"


def test_speed_is_judged_by_cpu_seconds():
    """Wall clocks of DMGP and DFGP are the longer ones here."""
    slow = [row | ({"seconds": 500.0} if row["method"] in ("DMGP", "DFGP") else {}) for row in made_up.deep()]
    finding = judged(f"{ALL_BASELINES} in speed", table_deep=slow)
    assert finding.verdict == HOLDS
    assert "DMGP 9.000, SVIGP 45, difference -36 ± 0" in finding.evidence


def sizes(rows):
    return [{"data": "protein", "method": "DFGP", "d": d, "m": m, **by_split("nlpd", nlpd)} for d, m, nlpd in rows]


def test_the_size_nearest_to_the_papers_choice_is_the_base():
    """DFGP: d = 3 of the grid, and rank 32."""
    rows = sizes([(1, 16, 0.9), (3, 2, 0.8), (3, 16, 0.71), (3, 32, 0.70)])
    finding = judged("Large d and r offer only", sensitivity=rows)
    assert finding.verdict == HOLDS
    assert finding.evidence.startswith("protein DFGP: +0.010 from d = 3, rank 32 to d = 3, rank 64;")


def test_a_smaller_size_that_is_better_says_nothing_about_larger_ones():
    rows = sizes([(1, 2, 0.1), (3, 2, 0.3), (3, 16, 0.7), (3, 32, 0.72)])
    finding = judged("Large d and r offer only", sensitivity=rows)
    assert finding.verdict == HOLDS
    assert finding.evidence.startswith("protein DFGP: -0.020 from d = 3, rank 32 to d = 3, rank 64")


def test_data_sets_with_few_splits_are_shown_and_not_judged():
    few = [
        {key: value for key, value in row.items() if not key.endswith(("_3", "_4"))} | {"data": "sarcos"}
        for row in made_up.sensitivity(best=0.5)
    ]
    finding = judged("Large d and r offer only", sensitivity=made_up.sensitivity() + few)
    assert finding.verdict == HOLDS
    assert "sarcos DMGP: +0.360" in finding.evidence
    assert "(not judged: fewer than 5 splits)" in finding.evidence
    assert judged("Large d and r offer only", sensitivity=few).verdict == UNDECIDED
    slow = judged("Large d and r severely", sensitivity=few)
    assert slow.verdict == UNDECIDED
    assert "10 CPU seconds at d = 1, rank 16, 30 at d = 2, rank 64 (3 splits)" in slow.evidence
    assert slow.brief.startswith("sarcos: 10 CPU seconds at d = 1, rank 16, 30 at d = 2, rank 64 (3 splits); 0 of 1")


def test_one_split_decides_nothing():
    for claim, shown in (("DMGP and DFGP reach equal", "10% of the rows suffice"), ("DFGP scales", "DFGP 50, DMGP 80")):
        finding = judged(claim)
        assert finding.verdict == UNDECIDED
        assert shown in finding.brief
    assert "no part of the rows suffices" in judged("DMGP and DFGP reach", electric=made_up.electric(part=0.31)).brief


def test_marginal_is_what_the_paper_calls_so():
    """Elevators, DMGP: .371 at d = 1, .351 at d = 2."""
    assert marginal_gain() == pytest.approx(0.020)
