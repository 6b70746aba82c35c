"""Claims hold, fail or wait by what the rows say."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED
from certgp_paper.experiments.results import Result
from made_up_rows import results


def verdicts(found):
    return {claim.statement: claim.judge(found) for claim in CLAIMS}


def the(start):
    (statement,) = [claim.statement for claim in CLAIMS if claim.statement.startswith(start)]
    return statement


def test_all_claims_hold_on_rows_that_agree_with_the_paper():
    on_one_split = {the("DMGP and DFGP reach equal"), the("DFGP scales better")}
    for statement, finding in verdicts(results()).items():
        assert finding.verdict == (UNDECIDED if statement in on_one_split else HOLDS), (statement, finding.evidence)
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
            "N = 500: lower in 0 of 1 runs, equal in 1 (D = 1: 2 against 2)",
        ),
        (
            {"figure1": made_up.figure1(fourier=100)},
            "Gaussian kernels need a lower rank than Matern kernels, random",
            "100",
        ),
        ({"figure1": made_up.figure1(fourier=50)}, "The rank that a theorem", "2 of 3 promised ranks"),
        ({"figure2": made_up.figure2(upper=0.1)}, "The divergence stays within", "3 of 4 bounds hold"),
        ({"curves": made_up.curves(mercer_shift=0.1)}, "MGP leads to", "mean 0.122, lower 0.122"),
        (
            {"curves": made_up.curves(fourier=0.6)},
            "The mean of FGP",
            "exact 0.500, FGP 0.600, difference +0.100 ± 0.010",
        ),
        ({"curves": made_up.curves(width=1.2)}, "FGP (r = 68) is more confident", "lower in 0 of 6 draws"),
        ({"ranks": made_up.ranks(error=0.3)}, "FGP learns", "r = 24: 0.300"),
        ({"ranks": made_up.ranks(coverage=0.5)}, "FGP performs well", "holds the function on 50% of the grid"),
        ({"ranks": made_up.ranks(last_shift=0.4)}, "As r increases, the mean of MGP", "r = 34: 0.490"),
        ({"ranks": made_up.ranks(last_half_width=1.0)}, "As r increases, the uncertainty", "r = 4: 1.80; r = 34: 2.00"),
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


def test_figure_1_is_judged_at_the_largest_n_and_the_others_are_named():
    tie = [row | {"N": 100} for row in made_up.figure1(fourier=2)]
    finding = verdicts(results(figure1=tie + made_up.figure1()))[the("Mercer approximations need")]
    assert finding.verdict == HOLDS
    assert finding.evidence == (
        "N = 500: lower in 1 of 1 runs (D = 1: 2 against 6); N = 100: lower in 0 of 1 runs, equal in 1"
    )
    lower = verdicts(results(figure1=[row | {"N": 900} for row in tie] + made_up.figure1()))
    assert lower[the("Mercer approximations need")].verdict == FAILS


def test_figure_2_names_its_n():
    other = [row | {"N": 100} for row in made_up.figure2()]
    finding = verdicts(results(figure2=other + made_up.figure2()))[the("At equal rank, random features")]
    shown = "lower at 1 of 1 ranks (r = 4: 0.1 against 0.2)"
    assert finding.evidence == f"N = 500: {shown}; N = 100: {shown}"


def test_draws_of_frequencies_that_disagree_decide_nothing():
    finding = verdicts(results(curves=made_up.curves(fourier=0.5)))[the("The mean of FGP")]
    assert finding.verdict == UNDECIDED
    assert "lower in 3 of 6 draws" in finding.evidence
    alone = [row for row in made_up.curves() if row["kind"] != "draw"]
    assert verdicts(results(curves=alone))[the("The mean of FGP")].verdict == NOT_RUN


def test_posterior_means_are_compared_with_each_other():
    """A mean that is as far from the function as the exact one, on the other side, is not similar to it."""
    rows = [row for row in made_up.curves() if row["kind"] != "curve"]
    rows += made_up.answers(0.3, 0.5, model="exact GP") + made_up.answers(-0.3, 0.5, model="Mercer GP, rank 34")
    assert verdicts(results(curves=rows))[the("MGP leads to")].verdict == FAILS
