"""Claims about the tables: on splits that methods share, in every variant, undecided where the data do not decide."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, HOLDS_IN_PART, MIXED, NOT_RUN, UNDECIDED
from certgp_paper.claims.paired import SPLIT_OVERLAP, paired_difference
from certgp_paper.claims.sizes import marginal_gain
from made_up_rows import by_split, results

ALL_BASELINES = "DMGP and DFGP beat all sparse and deep GP baselines"


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
        ({"table_nlpd": made_up.linear(mgp=0.60)}, "MGP behaves like SGPR", "MGP to SGPR 0.164 ± 0.000, limit 0.010"),
        ({"table_nlpd": made_up.linear(mgp=0.53)}, "MGP outperforms FGP", "above in 0 of 1 cells"),
        ({"table_nlpd": made_up.linear(mgp=0.53)}, "FGP is only slightly inferior", "by -0.010 ± 0.000"),
        ({"table_nlpd": made_up.linear(fgp=0.70)}, "FGP is only slightly inferior", "by 0.270 ± 0.000, limit 0.100"),
        ({"table_rmse": made_up.linear(mgp=0.60)}, "RMSE follows", "elevators: rank correlation -0.500"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in NLPD", "difference +0.010 ± 0.000"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, f"{ALL_BASELINES} in RMSE", "DMGP 0.430, SGPR+ 0.420"),
        ({"table_deep": made_up.deep(DMGP=0.42)}, "DMGP and DFGP beat simple DNN", "DMGP 0.420, DNN+S 0.410"),
        ({"table_deep": made_up.deep(DNN_M=0.35)}, "Joint training", "DMGP 0.360, DNN+M 0.350, difference +0.010 ±"),
        ({"table_deep": made_up.deep(DNN_S=0.39)}, "DNN+M and DNN+F improve", "DNN+M 0.400, DNN+S 0.390"),
        ({"table_deep": made_up.deep(DFGP=0.40)}, "DMGP and DFGP beat the exact", "DFGP 0.400, exact GP 0.379"),
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
    assert "0 of 14 clear, 14 with too few runs" in beaten.evidence
    nothing_shared = [row | (missing if row["method"] == "DMGP" else dict.fromkeys(hard)) for row in made_up.deep()]
    only_fourier = judged("Joint training", table_deep=nothing_shared)
    assert "DMGP" not in only_fourier.evidence


def test_nothing_is_said_on_part_of_the_evidence():
    few = [row for row in made_up.deep() if row["method"] in ("DMGP", "DFGP", "SGPR+")]
    assert judged(f"{ALL_BASELINES} in NLPD", table_deep=few).verdict == NOT_RUN
    without = [{key: value for key, value in row.items() if not key.startswith("cpu")} for row in made_up.deep()]
    assert judged(f"{ALL_BASELINES} in speed", table_deep=without).verdict == NOT_RUN
    assert judged("DMGP and DFGP beat the exact", exact_gp=[]).verdict == NOT_RUN


def test_linear_claims_rest_on_the_papers_own_files_and_five_splits():
    few = [row | {"data": "protein", "nlpd_split_4": None} for row in made_up.linear(mgp=0.9)]
    other = [row | {"data": "bike", "note": "other columns"} for row in made_up.linear(mgp=0.9)]
    finding = judged("MGP outperforms FGP", table_nlpd=made_up.linear() + few + other)
    assert finding.verdict == HOLDS
    assert "above in 1 of 1 cells; " in finding.evidence
    assert "; `certgp`: on other data, not judged: -0.380 ± 0.000, 1 cells; " in finding.evidence
    ranks = "elevators at rank 6, 10, 50, 200, 300 and protein at rank 6, 10, 50, 100, 200, 300"
    assert f"`certgp`: not judged, since not all methods have five splits: {ranks}" in finding.evidence
    assert finding.brief.startswith("certgp: FGP higher by 0.090 ± 0.000; other data: -0.380 ± 0.000, 1 cells; paper:")
    assert judged("MGP outperforms FGP", table_nlpd=few + other).verdict == NOT_RUN


def test_limits_are_what_the_papers_table_has_in_the_same_cells():
    """At rank 100 it prints MGP .43 and SGPR .44 on elevators, 1.14 and 1.07 on protein."""
    rows = made_up.linear()
    assert "limit 0.010, 1 cells" in judged("MGP behaves", table_nlpd=rows).evidence
    more = rows + [row | {"data": "protein"} for row in rows]
    assert "limit 0.040, 2 cells" in judged("MGP behaves", table_nlpd=more).evidence
    assert "elevators: rank correlation 1.000 ± 0.000, limit 0.866" in judged("RMSE follows").evidence


def test_other_data_are_in_the_short_text_where_they_speak_against_the_claim():
    other = [row | {"data": "bike", "note": "other columns"} for row in made_up.linear(mgp=0.9)]
    found = judged("MGP behaves", table_nlpd=made_up.linear() + other)
    assert found.verdict == HOLDS
    assert "limit 0.010; other data: 0.464 ± 0.000, limit 0." in found.brief
    noisy = [row | {f"nlpd_split_{s}": (0.43, 0.45)[s % 2] for s in range(5)} for row in made_up.linear()]
    few = [row for row in made_up.linear() if row["method"] != "MGP"] + [r for r in noisy if r["method"] == "MGP"]
    found = judged("MGP behaves", table_nlpd=few + other)
    assert found.verdict == UNDECIDED
    assert "other data: 0.464" in found.brief
    agreeing = [row | {"data": "bike", "note": "other columns"} for row in made_up.linear()]
    assert "other" not in judged("MGP behaves", table_nlpd=made_up.linear() + agreeing).brief
    failing = judged("MGP behaves", table_nlpd=made_up.linear(mgp=0.6) + agreeing)
    assert failing.verdict == FAILS
    assert "other data: 0.006 ± 0.000" in failing.brief


def test_linear_claims_are_judged_in_both_variants():
    worse = [row for row in made_up.linear(mgp=0.55) if row["variant"] == "paper"]
    rows = [row for row in made_up.linear() if row["variant"] == "certgp"] + worse
    finding = judged("MGP outperforms", table_nlpd=rows)
    assert finding.verdict == MIXED
    assert finding.readings == (("certgp", HOLDS), ("paper", FAILS))
    assert all(part.startswith(("`certgp`: ", "`paper`: ")) for part in finding.evidence.split("; "))
    noisy = [row | {f"nlpd_split_{s}": (0.2, 0.9)[s % 2] for s in range(5)} for row in worse if row["method"] == "MGP"]
    rows = [row for row in made_up.linear() if row["variant"] == "certgp" or row["method"] != "MGP"] + noisy
    assert judged("MGP outperforms", table_nlpd=rows).verdict == HOLDS_IN_PART


@pytest.mark.parametrize("claim", [f"{ALL_BASELINES} in NLPD", "DMGP and DFGP beat simple", "Joint training"])
def test_deep_claims_are_judged_in_both_variants(claim):
    alone = judged(claim)
    assert alone.verdict == HOLDS
    assert alone.readings == (("certgp", HOLDS), ("paper", NOT_RUN))
    both = judged(claim, table_deep=made_up.deep() + as_paper(made_up.deep()))
    assert both.readings == (("certgp", HOLDS), ("paper", HOLDS))
    worse = judged(claim, table_deep=made_up.deep() + as_paper(made_up.deep(DMGP=0.5)))
    assert worse.verdict == MIXED
    assert worse.readings == (("certgp", HOLDS), ("paper", FAILS))


def test_joint_training_is_undecided_where_splits_disagree():
    noisy = {f"nlpd_split_{split}": 0.42 if split % 2 else 0.37 for split in range(5)}
    rows = [row | (noisy if row["method"] == "DMGP" else {}) for row in made_up.deep()]
    finding = judged("Joint training", table_deep=rows)
    assert finding.verdict == UNDECIDED
    assert "DMGP 0.390, DNN+M 0.400, difference -0.010 ± 0.042 (5 splits)" in finding.evidence
    assert finding.brief == "certgp: DMGP against DNN+M (elevators) NLPD -0.010 ± 0.042, 1 of 2 clear"


def test_the_short_text_names_the_nearest_rival_with_enough_splits():
    few = {f"nlpd_split_{split}": None for split in (3, 4)}
    rows = [row | (few if row["method"] == "SGPR+" else {}) for row in made_up.deep(DKL=0.34)]
    finding = judged(f"{ALL_BASELINES} in NLPD", table_deep=rows)
    assert finding.brief == "certgp: DMGP against DKL (elevators) NLPD +0.020 ± 0.000, 10 of 14 clear, 2 clearly not"
    rows = [row | (few if row["method"] == "DKL" else {}) for row in made_up.deep(DKL=0.34)]
    finding = judged(f"{ALL_BASELINES} in NLPD", table_deep=rows)
    assert finding.brief == "certgp: DMGP against SGPR+ (elevators) NLPD -0.060 ± 0.000, 12 of 14 clear"
    assert "elevators: DMGP 0.360, DKL 0.340, difference +0.020 ± 0.000 (3 splits)" in finding.evidence


def test_speed_is_judged_by_cpu_seconds():
    """Wall clocks of DMGP and DFGP are the longer ones here."""
    slow = [row | ({"seconds": 500.0} if row["method"] in ("DMGP", "DFGP") else {}) for row in made_up.deep()]
    finding = judged(f"{ALL_BASELINES} in speed", table_deep=slow)
    assert finding.verdict == HOLDS
    assert "DMGP 9, SVIGP 45, difference -36 ± 0" in finding.evidence


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


def test_the_dearest_size_of_the_paper_is_named_where_it_was_not_run():
    claim, missing = "Large d and r severely", "the paper's dearest size, d = 3, rank 4096, was not run here"
    assert missing in judged(claim).evidence
    dearest = [row | {"d": 3, "m": 16} for row in made_up.sensitivity() if row["d"] == 2]
    assert missing not in judged(claim, sensitivity=made_up.sensitivity() + dearest).evidence


def test_the_short_text_of_a_marginal_gain_has_the_largest():
    more = made_up.sensitivity() + [row | {"m": 4, "d": 3} for row in made_up.sensitivity(best=0.845) if row["d"] == 2]
    brief = judged("Large d and r offer", sensitivity=more).brief
    assert brief == "protein DMGP +0.015 ± 0.000 at d = 3, rank 64, limit 0.020; 2 of 2 clear"


def test_one_variant_is_judged_at_the_whole_level():
    """Holm's first limit for two comparisons is .025; of a claim with two variants it is .0125."""
    nlpd = {"DNN+M": 0.40, "DNN+F": 0.40}
    gaps = (-0.0038, -0.0068, -0.0098, -0.0128, -0.0158)
    p_value = paired_difference(gaps, [0.0] * 5, SPLIT_OVERLAP).p_value
    assert 0.0125 < p_value < 0.025
    rows = [
        row | {f"nlpd_split_{s}": 0.42 + gap for s, gap in enumerate(gaps)} if row["method"] in nlpd else row
        for row in made_up.deep(DNN_S=0.42)
    ]
    assert judged("DNN+M and DNN+F improve", table_deep=rows).verdict == HOLDS


@pytest.mark.parametrize("claim", ["DMGP and DFGP reach equal", "DFGP scales better"])
def test_electric_is_judged_from_five_splits_on(claim):
    assert judged(claim).verdict == HOLDS
    for splits in (1, 4):
        assert judged(claim, electric=made_up.electric(splits=splits)).verdict == UNDECIDED


@pytest.mark.parametrize("claim", ["DMGP and DFGP reach equal", "DFGP scales better"])
def test_electric_is_judged_on_the_data_with_the_most_splits(claim):
    few = [row | {"nlpd_split_0": 9.0, "cpu_seconds_split_0": 1e-3} for row in made_up.electric(splits=1)]
    many = [row | {"data": "protein"} for row in made_up.electric()]
    for rows in (few + many, many + few):
        assert judged(claim, electric=rows).verdict == HOLDS
        assert judged(claim, electric=rows).brief == judged(claim).brief


def test_equal_precision_needs_a_part_of_the_rows_for_both():
    claim = "DMGP and DFGP reach"
    assert "DFGP needs 10% of the rows, DMGP needs 10% of the rows, 5 splits" in judged(claim).brief
    assert judged(claim, electric=made_up.electric(part=0.308)).verdict == HOLDS  # within the margin of .01
    worse = judged(claim, electric=made_up.electric(part=0.32))
    assert worse.verdict == FAILS
    assert "needs more rows than were tried" in worse.brief
    half = [row for row in made_up.electric(part=0.32) if row["method"] != "DFGP"]
    half += [row for row in made_up.electric() if row["method"] == "DFGP"]
    assert judged(claim, electric=half).verdict == FAILS
    near = {f"nlpd_split_{s}": (0.2, 0.4, 0.29, 0.31, 0.3)[s] for s in range(5)}
    rows = [row | (near if row["fraction"] == 0.1 else {}) for row in made_up.electric()]
    assert judged(claim, electric=rows).verdict == UNDECIDED
    slow = [
        row | {f"cpu_seconds_split_{s}": 90.0 for s in range(5)} for row in made_up.electric() if row["method"] != "DKL"
    ]
    baseline = [row for row in made_up.electric() if row["method"] == "DKL"]
    assert judged(claim, electric=slow + baseline).verdict == FAILS


def test_a_network_is_no_baseline_of_equal_precision_and_stands_beside():
    """DNN+S has .15, which no part of the rows reaches."""
    finding = judged("DMGP and DFGP reach")
    assert finding.verdict == HOLDS
    assert "best baseline on all rows DKL with 0.300; not among the baselines: DNN+S with 0.150;" in finding.evidence
    only = [row for row in made_up.electric() if row["method"] != "DKL"]
    assert judged("DMGP and DFGP reach", electric=only).verdict == NOT_RUN


def test_scaling_is_the_growth_over_parts_of_the_rows_and_not_the_time_at_one_size():
    finding = judged("DFGP scales better")
    assert finding.brief.startswith(
        "CPU seconds grow like rows^1.00 (DFGP) and rows^1.30 (DMGP), difference of exponen"
    )
    slower = [
        row | {f"cpu_seconds_split_{s}": 3.0 * row[f"cpu_seconds_split_{s}"] for s in range(5)}
        for row in made_up.electric()
        if row["method"] == "DFGP"
    ]
    others = [row for row in made_up.electric() if row["method"] != "DFGP"]
    assert judged("DFGP scales better", electric=others + slower).verdict == HOLDS
    cheap = [row for row in made_up.electric() if (row["method"], row["fraction"]) != ("DMGP", 0.1)]
    assert judged("DFGP scales better", electric=cheap).verdict == NOT_RUN  # one size that both have
    steep = [
        row | ({"cpu_seconds_split_0": 1.0} if row["fraction"] == 0.1 and row["method"] == "DFGP" else {})
        for row in made_up.electric()
    ]
    assert judged("DFGP scales better", electric=steep).verdict == UNDECIDED


def test_marginal_is_what_the_paper_calls_so():
    """Elevators, DMGP: .371 at d = 1, .351 at d = 2."""
    assert marginal_gain() == pytest.approx(0.020)
