"""Claims hold, fail or wait by what the rows say."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, MIXED, NOT_RUN, NOT_TESTABLE, TOPICS, UNDECIDED
from certgp_paper.experiments.results import Result
from made_up_rows import results


def verdicts(found):
    return {claim.statement: claim.judge(found) for claim in CLAIMS}


def the(start):
    (statement,) = [claim.statement for claim in CLAIMS if claim.statement.startswith(start)]
    return statement


def test_all_claims_hold_on_rows_that_agree_with_the_paper():
    others = {the("The ranks that the theorem on random"): NOT_TESTABLE, the("By the theorems moderate"): MIXED}
    for statement, finding in verdicts(results()).items():
        assert finding.verdict == others.get(statement, HOLDS), (statement, finding.evidence)
        assert any(character.isdigit() for character in finding.evidence)


def test_rules_say_which_limits_are_ours():
    ours = {claim.statement for claim in CLAIMS if claim.our_limit}
    named = ("MGP behaves", "FGP is only", "RMSE follows", "Theorem 3", "By the theorems", "Exact GPs", "Mean and int")
    named += (
        "As r increases, the mean",
        "FGP performs",
        "FGP learns",
        "Large d and r offer",
        "Large d and r severely",
        "At a fixed rank",
    )
    assert ours == {the(start) for start in (*named, "DMGP and DFGP reach")}
    assert not any("ours" in claim.rule for claim in CLAIMS)  # they have a line of their own


def test_statements_are_short_and_rules_begin_with_a_capital():
    for claim in CLAIMS:
        assert len(claim.statement) <= 90, claim.statement
        assert claim.rule[0].isupper() or claim.rule.startswith("KL")
        assert claim.topic in TOPICS


def test_nothing_is_decided_without_rows():
    empty = {name: Result("", []) for name in made_up.everything()}
    strange = {name: Result("", [{"colour": "blue", "rank": None}]) for name in made_up.everything()}
    for found in ({}, empty, strange):
        assert {finding.verdict for finding in verdicts(found).values()} == {NOT_RUN}


@pytest.mark.parametrize(
    ("changed", "claim", "evidence"),
    [
        (
            {"figure1": made_up.figure1(fourier=1)},
            "Mercer needs",
            "over all dimensions together 2.00 (2.00 to 2.00); read strictly, as lower in every single run, it does "
            "not hold; N = 500: lower in 0 of 5 runs (D = 1: 2 against 1)",
        ),
        (
            {"figure1": made_up.figure1(fourier=120)},
            "Gaussian kernels need a lower rank than Matern kernels: random",
            "120 against 100",
        ),
        (
            {"figure1": made_up.figure1(fourier=50)},
            "The ranks that this library's",
            "10 of 15 ranks suffice, promised before the data, 5 point sets",
        ),
        ({"figure2": made_up.figure2(bound=0.3)}, "The KL stays below", "5 of 10 bounds hold"),
        ({"figure2": made_up.figure2(upper=0.1)}, "The KL stays within", "15 of 20 bounds hold"),
    ],
)
def test_claims_flip_with_the_rows(changed, claim, evidence):
    finding = verdicts(results(**changed))[the(claim)]
    assert finding.verdict == FAILS
    assert evidence in finding.evidence


def test_time_is_linear_where_every_exponent_is_clearly_below_the_limit():
    def judged(*cells):
        return verdicts(results(row_cost=[row for cell in cells for row in cell]))[the("At a fixed rank")]

    linear = made_up.row_cost()
    assert judged(linear).brief == (
        "from 50,000 to 200,000 rows time grows like N^1.00 to N^1.00 (± 0.00, SGPR with 90 columns), 2 of 2 "
        "clearly below N^1.1, 9 rounds"
    )
    assert judged(linear, [row | {"D": 19} for row in made_up.row_cost(1.2)]).verdict == FAILS
    assert judged(linear, [row | {"D": 19} for row in made_up.row_cost(1.0995)]).verdict == UNDECIDED
    assert judged(made_up.row_cost(rounds=4)).verdict == UNDECIDED


def test_a_rank_tried_in_vain_counts_as_higher():
    finding = verdicts(results(figure1=made_up.figure1(fourier=None)))[the("Mercer needs")]
    assert finding.verdict == HOLDS
    assert "2 against more than 1000" in finding.evidence


def test_a_rank_tried_in_vain_loses_against_one_that_was_found():
    rows = [row | {"rank": None, "more_than": 1000} if row["method"] == "mercer" else row for row in made_up.figure1()]
    found = verdicts(results(figure1=rows))
    assert found[the("Mercer needs")].verdict == FAILS
    for promised in ("The ranks that the theorem on Mercer", "The ranks that this library's"):
        assert found[the(promised)].verdict == FAILS  # 12 were promised, 1,000 do not suffice


def test_figure_1_is_judged_at_the_largest_n_and_the_others_are_named():
    lost = [row | {"N": 100} for row in made_up.figure1(fourier=1) if row["method"] != "rates"]
    finding = verdicts(results(figure1=lost + made_up.figure1()))[the("Mercer needs")]
    assert finding.verdict == HOLDS
    assert finding.evidence == (
        "lower in 1 of 1 dimensions, ratio of ranks 0.33 to 0.33; lower in 5 of 5 runs, 5 point sets; ratio of ranks "
        "in each dimension, with intervals that hold together: D = 1: 0.33 (0.33 to 0.33); over all dimensions "
        "together 0.33 (0.33 to 0.33); read strictly, as lower in every single run, it holds; N = 500: lower in 5 of "
        "5 runs (D = 1: 2 against 6); N = 100: lower in 0 of 5 runs"
    )
    lower = verdicts(results(figure1=[row | {"N": 900} for row in lost] + made_up.figure1()))
    assert lower[the("Mercer needs")].verdict == FAILS


def test_figure_2_names_its_n():
    other = [row | {"N": 100} for row in made_up.figure2()]
    finding = verdicts(results(figure2=other + made_up.figure2()))[the("At equal rank Mercer")]
    shown = "lower at 5 of 5 ranks and point sets, 5 of these (r = 4: 0.1 against 0.2, "
    assert finding.evidence.startswith(f"N = 500: {shown}")
    assert f"N = 100: {shown}" in finding.evidence
