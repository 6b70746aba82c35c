"""Claims hold, fail or wait by what the rows say."""

from __future__ import annotations

import made_up_rows as made_up
import pytest
from made_up_rows import results

from certgp.experiments.paper_claims import CLAIMS, FAILS, HOLDS, NOT_RUN
from certgp.experiments.results import Result


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
            "0 of 1 runs, equal in 1 (D = 1: 2 against 2)",
        ),
        (
            {"figure1": made_up.figure1(fourier=100)},
            "Gaussian kernels need a lower rank than Matern kernels, random",
            "100",
        ),
        ({"figure1": made_up.figure1(fourier=50)}, "The rank that a theorem", "2 of 3 promised ranks"),
        ({"figure2": made_up.figure2(upper=0.1)}, "The divergence stays within", "3 of 4 bounds hold"),
        ({"table_nlpd": made_up.linear(mgp=0.60)}, "MGP behaves like SGPR", "MGP 0.159, FGP 0.079"),
        ({"table_nlpd": made_up.linear(mgp=0.53)}, "FGP is slightly inferior", "in 0 of 1 cells"),
        ({"table_deep": made_up.deep(DMGP=0.43)}, "DMGP and DFGP outperform all other methods in NLPD", "SGPR+ 0.420"),
        ({"table_deep": made_up.deep(DNN_M=0.36)}, "Joint training", "DMGP 0.370, DNN+M 0.360"),
        ({"table_deep": made_up.deep(DNN_S=0.39)}, "The non-parametric", "DNN+M 0.400, DNN+S 0.390"),
        ({"sensitivity": made_up.sensitivity(best=0.7)}, "Large d and r offer only", "0.160 from rank 16 to 64"),
        ({"electric": made_up.electric(part=0.31)}, "DMGP and DFGP reach equal", "no part of the rows suffices"),
        ({"curves": made_up.curves(fourier=0.6)}, "The mean of FGP", "exact 0.500, FGP 0.600"),
        ({"ranks": made_up.ranks(error=0.3)}, "FGP learns", "r = 24: 0.300"),
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
    beaten = found[the("DMGP and DFGP outperform all other methods in NLPD")]
    assert beaten.verdict == FAILS
    assert beaten.evidence == "elevators: DMGP 0.430, DFGP 0.350, best other SGPR+ 0.420 (2 splits)"
    assert found[the("Joint training beats two steps")].verdict == FAILS
    nothing_shared = [row | (missing if row["method"] == "DMGP" else dict.fromkeys(hard)) for row in made_up.deep()]
    found = verdicts(results(table_deep=nothing_shared))
    assert found[the("DMGP and DFGP outperform all other methods in NLPD")].verdict == NOT_RUN


def test_nothing_is_said_on_part_of_the_evidence():
    some = [row for row in made_up.linear() if row["variant"] == "certgp"]
    other_splits = [row | {"splits": 2} if row["method"] == "MGP" else row for row in made_up.linear()]
    for rows in (some, other_splits):
        assert verdicts(results(table_nlpd=rows))[the("FGP is slightly inferior")].verdict == NOT_RUN
    few = [row for row in made_up.deep() if row["method"] in ("DMGP", "DFGP", "SGPR+")]
    assert (
        verdicts(results(table_deep=few))[the("DMGP and DFGP outperform all other methods in NLPD")].verdict == NOT_RUN
    )


def test_a_claim_about_tables_has_to_hold_in_every_variant():
    worse = [row | {"variant": "released"} for row in made_up.linear(mgp=0.55) if row["variant"] == "paper"]
    rows = made_up.linear() + worse
    finding = verdicts(results(table_nlpd=rows))[the("FGP is slightly inferior")]
    assert finding.verdict == FAILS
    assert "paper: MGP lower in 1 of 1" in finding.evidence
    assert "released: MGP lower in 0 of 1" in finding.evidence
