"""Claims about ranks need five point sets and count no empty promises; the one on rates goes by the exponent of N."""

from __future__ import annotations

import pytest

import made_up_rows as made_up
from certgp_paper.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, NOT_TESTABLE, UNDECIDED
from certgp_paper.claims.bounds import Check, judge_checks
from certgp_paper.experiments.fresh_sets import FRESH_SETS
from made_up_rows import results


def judge(start, **changed):
    (claim,) = [claim for claim in CLAIMS if claim.statement.startswith(start)]
    return claim.judge(results(**changed))


def test_fewer_than_five_point_sets_decide_nothing():
    few = [row for row in made_up.figure1() if row.get("seed", 0) < 4]
    found = judge("Mercer needs", figure1=few)
    assert found.verdict == UNDECIDED
    assert "fewer than 5 point sets; N = 500: lower in 4 of 4 runs" in found.evidence
    few = [row for row in made_up.figure2() if row["seed"] < 4]
    assert judge("At equal rank truncation", figure2=few).verdict == UNDECIDED


def test_a_larger_n_with_few_point_sets_is_named_and_not_judged():
    larger = [row | {"N": 900} for row in made_up.figure1(fourier=2) if row.get("seed") == 0]
    found = judge("Mercer needs", figure1=larger + made_up.figure1())
    assert found.verdict == HOLDS
    assert "N = 900: lower in 0 of 1 runs, equal in 1" in found.evidence


def test_ranks_are_judged_dimension_by_dimension():
    rows = [row for row in made_up.figure1() if row["method"] in ("mercer", "fourier") and row["kernel"] == "gaussian"]
    assert judge("Mercer needs", figure1=rows).verdict == HOLDS
    equal = [row | {"rank": 2, "D": 2} for row in rows]
    assert judge("Mercer needs", figure1=rows + equal).verdict == UNDECIDED
    assert judge("Mercer needs", figure1=equal).verdict == UNDECIDED
    worse = [row | {"rank": 3 if row["method"] == "mercer" else 2, "D": 2} for row in rows]
    assert judge("Mercer needs", figure1=rows + worse).verdict == FAILS
    noisy = [row | ({"rank": (1, 9, 1, 9, 2)[row["seed"]]} if row["method"] == "fourier" else {}) for row in rows]
    assert judge("Mercer needs", figure1=noisy).verdict == UNDECIDED


def test_the_strict_reading_stands_beside_the_verdict():
    rows = [row for row in made_up.figure1() if row["method"] in ("mercer", "fourier") and row["kernel"] == "gaussian"]
    assert "read strictly, as lower in every single run, it holds" in judge("Mercer needs", figure1=rows).evidence
    ranks = {"mercer": (2,) * 5, "fourier": (8, 8, 6, 6, 2)}
    tied = [row | {"rank": ranks[row["method"]][row["seed"]]} for row in rows]
    many = [row | {"seed": row["seed"] + 5 * k} for row in tied for k in range(2)]
    found = judge("Mercer needs", figure1=many)
    assert found.verdict == HOLDS
    assert "it does not hold" in found.evidence
    assert found.brief == "lower in 1 of 1 dimensions, ratio of ranks 0.37 to 0.37, 10 point sets"
    assert "lower in 8 of 10 runs, equal in 2, 10 point sets" in found.evidence


def test_the_n_with_the_most_point_sets_is_judged():
    larger = [row | {"N": 900} for row in made_up.figure1(fourier=2)]
    more = [row | {"seed": row["seed"] + 5} for row in made_up.figure1() if "seed" in row]
    assert judge("Mercer needs", figure1=larger + made_up.figure1()).verdict == UNDECIDED
    assert judge("Mercer needs", figure1=larger + made_up.figure1() + more).verdict == HOLDS


def test_fresh_point_sets_decide_alone_once_all_are_there():
    first = [row for row in made_up.figure1(fourier=2) if row["kernel"] == "gaussian" and "seed" in row]
    lower = [row for row in made_up.figure1() if row["kernel"] == "gaussian" and row.get("seed") == 0]
    fresh = [row | {"seed": seed} for row in lower for seed in FRESH_SETS]
    assert judge("Mercer needs", figure1=first + fresh[:-1]).verdict == UNDECIDED
    found = judge("Mercer needs", figure1=first + fresh)
    assert found.verdict == HOLDS
    assert found.brief.endswith("20 point sets")
    assert "the first 5 point sets, which these 20 fresh ones repeat: lower in 0 of 1 dimensions" in found.evidence
    other = [row | {"D": 2} for row in first]
    assert judge("Mercer needs", figure1=first + fresh + other).verdict == UNDECIDED


def test_one_rank_that_is_worse_fails_on_any_number_of_point_sets():
    rows = [row | ({"kl": 0.5} if row["method"] == "mercer" and row["seed"] == 3 else {}) for row in made_up.figure2()]
    assert judge("At equal rank Mercer", figure2=rows).verdict == FAILS


def test_empty_promises_are_not_counted():
    """500 features for 500 rows say nothing."""
    rows = [row | {"a_priori_sharp": 500, "trace_sharp": 12} if "rank" in row else row for row in made_up.figure1()]
    found = judge("The ranks that this library's", figure1=[row for row in rows if row.get("rank") != 100])
    assert found.verdict == HOLDS
    assert "15 of 15 ranks suffice, promised from the data, by the trace bound" in found.evidence
    assert found.evidence.endswith("not counted: 15 promises of N features or more, which say nothing")


def test_the_papers_promises_are_apart_from_the_librarys_and_from_those_on_other_frequencies():
    rows = [row | {"a_priori_sharp": 1} if "rank" in row else row for row in made_up.figure1()]
    assert judge("The ranks that the theorem on Mercer", figure1=rows).verdict == HOLDS
    assert judge("The ranks that this library's", figure1=rows).verdict == FAILS
    other = [row | ({"a_priori_paper": 1} if row["method"] == "fourier" else {}) for row in made_up.figure1()]
    assert judge("The ranks that the theorem on Mercer", figure1=other).verdict == HOLDS
    found = judge("The ranks that the theorem on random", figure1=made_up.figure1())
    assert found.verdict == NOT_TESTABLE
    assert "all about Avron's modified law of frequencies" in found.evidence


def test_ranks_that_theorems_promise_are_moderate_below_n():
    found = judge("By the theorems")
    assert found.readings == (("Mercer (Gaussian)", HOLDS), ("Mercer (Matern)", HOLDS), ("random features", FAILS))
    assert "Mercer (Gaussian): 5 of 5 below N, 7.5 times the need" in found.brief  # 15 for 2
    assert "random features: 0 of 5 below N, least 1e+12" in found.brief
    empty = [row | ({"a_priori_paper": None} if row.get("seed") == 3 else {}) for row in made_up.figure1()]
    assert dict(judge("By the theorems", figure1=empty).readings)["Mercer (Gaussian)"] == FAILS
    few = [row for row in made_up.figure1() if row.get("seed", 0) < 4]
    assert dict(judge("By the theorems", figure1=few).readings)["Mercer (Gaussian)"] == UNDECIDED


def checks(kept):
    return [Check(("gaussian", 1), seed, each) for seed, each in enumerate(kept)]


def test_a_certain_bound_is_refuted_once_and_a_likely_one_by_more_than_chance_allows():
    """Of ten point sets two exceptions have a chance of 8.6 % at 5 % each, three of 1.2 %."""
    assert judge_checks(checks([True] * 9 + [False]), certain=True) == FAILS
    assert judge_checks(checks([True] * 10), certain=True) == HOLDS
    assert judge_checks(checks([True] * 8 + [False] * 2), certain=False) == HOLDS
    assert judge_checks(checks([True] * 7 + [False] * 3), certain=False) == FAILS
    many = [Check((group,), seed, group > 0 or seed > 2) for group in range(6) for seed in range(10)]
    assert judge_checks(many, certain=False) == HOLDS  # 1.2 % is no surprise among six groups


def test_few_point_sets_leave_bounds_undecided():
    assert judge_checks(checks([True] * 4), certain=True) == UNDECIDED
    assert judge_checks(checks([True] * 3 + [False]), certain=True) == FAILS
    few = [row for row in made_up.figure2() if row["seed"] < 4]
    assert judge("The KL stays below", figure2=few).verdict == UNDECIDED
    few = [row for row in made_up.figure1() if row.get("seed", 0) < 4]
    assert judge("The ranks that the theorem on Mercer", figure1=few).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("ours", "burt", "verdict"),
    [
        ((20, 40), (25, 100), HOLDS),
        ((20, 80), (25, 100), UNDECIDED),  # exponents .50 and .50
        ((20, 160), (25, 100), FAILS),
        ((20, 40), (60, 600), FAILS),  # three times the rank
        ((4, 8), (8, 80), UNDECIDED),  # twice the rank, up to rounding
    ],
)
def test_the_comparison_with_burt_is_by_ratio_and_by_exponent(ours, burt, verdict):
    rows = [row for row in made_up.figure1() if row["method"] != "rates"] + made_up.rates(ours, burt)
    found = judge("Theorem 3's ranks are like", figure1=rows)
    assert found.verdict == verdict
    if verdict == HOLDS:
        assert "Gaussian, D = 1: rank 20 against 25 at N = 1,600, 5 sizes" in found.evidence
        assert "against N^0.50" in found.evidence
    only = [row for row in made_up.figure1() if row["method"] != "rates"]
    assert judge("Theorem 3's ranks are like", figure1=only).verdict == NOT_RUN


def test_the_short_text_of_the_comparison_with_burt_goes_from_the_first_case_to_the_last():
    plane = [row | {"D": 2, "theorem3": 42, "burt": 67} for row in made_up.rates() if row["kernel"] == "gaussian"]
    found = judge("Theorem 3's ranks are like", figure1=made_up.figure1() + plane)
    assert (
        found.brief
        == "Gaussian rank 20 against 25 (D = 1) to 42 against 67 (D = 2), Matern N^0.25 against N^0.50 (3/2)"
    )


def test_few_sizes_leave_the_comparison_with_burt_undecided():
    rows = [row for row in made_up.figure1() if row.get("rows") != 400]
    assert judge("Theorem 3's ranks are like", figure1=rows).verdict == UNDECIDED
