"""Verdicts that the data support: t quantiles, several comparisons, too few runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from certgp_paper.claims import FAILS, HOLDS, UNDECIDED
from certgp_paper.claims.paired import (
    SPLIT_OVERLAP,
    Difference,
    all_lower,
    count_by_outcome,
    is_significant,
    judge_all_lower,
    paired_difference,
)


def test_p_values_are_those_of_the_paired_t_test():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 7))
    found = paired_difference(first, second)
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue)
    wider = paired_difference(first, second, SPLIT_OVERLAP)  # Nadeau and Bengio
    assert wider.standard_error == pytest.approx(found.standard_error * np.sqrt(1.0 + 7 / 9))
    assert wider.p_value > found.p_value


def test_one_standard_error_decides_nothing():
    """What was a verdict before: lower by 1.5 standard errors."""
    assert all_lower([Difference(-0.015, 0.01, 5)]) == UNDECIDED
    assert all_lower([Difference(-0.03, 0.01, 5)]) == HOLDS  # beyond 2.776, the quantile of t with 4 degrees
    assert all_lower([Difference(-0.027, 0.01, 5)]) == UNDECIDED
    assert all_lower([Difference(0.03, 0.01, 5)]) == FAILS


def test_fewer_than_five_runs_are_undecided_however_clear():
    for count in range(1, 5):
        assert all_lower([paired_difference([0.0] * count, [1.0] * count)]) == UNDECIDED
    assert all_lower([paired_difference([0.0] * 5, [1.0] * 5)]) == HOLDS
    assert all_lower([paired_difference([1.0] * 5, [0.0] * 5)]) == FAILS
    assert all_lower([paired_difference([1.0] * 5, [1.0] * 5)]) == UNDECIDED


def test_holm_against_a_table():
    """[Holm 1979] with m = 4 at 5 %: limits .0125, .0167, .025, .05 in the order of the p-values."""
    assert is_significant([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]
    assert is_significant([0.04, 0.01, 0.02, 0.012]) == [True, True, True, True]
    assert is_significant([0.013, 0.013, 0.013, 0.013]) == [False] * 4
    assert is_significant([]) == []


def test_a_claim_of_many_comparisons_needs_clearer_ones():
    alone, together = Difference(-0.03, 0.01, 5), [Difference(-0.03, 0.01, 5)] * 4
    assert all_lower([alone]) == HOLDS
    assert all_lower(together) == UNDECIDED
    mixed = [Difference(-0.2, 0.01, 5), Difference(0.2, 0.01, 5), Difference(-0.2, 0.01, 2), Difference(0.0, 0.01, 5)]
    finding = judge_all_lower(mixed, "numbers")
    assert finding.verdict == FAILS
    counts = "1 of 4 clear, 1 lean against, 1 clearly not, 1 with too few runs"
    assert finding.evidence == f"numbers; {counts}"


def test_comparisons_with_too_few_runs_are_not_corrected_for():
    """p = .01 passes as one of four, whatever waits for more splits beside it; the claim stays open all the same."""
    clear, few = Difference(-0.1, 0.02, 5), Difference(-0.1, 0.01, 2)
    assert 0.05 / 5 > clear.p_value > 0.05 / 14
    assert count_by_outcome([clear, *[few] * 13]) == "1 of 14 clear, 13 with too few runs"
    assert all_lower([clear, few]) == UNDECIDED
    assert all_lower([Difference(0.1, 0.02, 5), *[few] * 13]) == FAILS


def test_counts_are_disjoint():
    """One that leans and has too few runs is counted once."""
    every = [Difference(-0.2, 0.01, 5), Difference(-0.01, 0.01, 5), Difference(0.01, 0.01, 5), Difference(0.2, 0.01, 5)]
    every += [Difference(-0.2, 0.01, 4), Difference(0.2, None, 1)]
    assert count_by_outcome(every) == ("1 of 6 clear, 1 lean so, 1 lean against, 1 clearly not, 2 with too few runs")


def test_text_shows_the_interval():
    difference = Difference(-0.024, 0.01, 5)
    assert difference.half_width == pytest.approx(0.01 * 2.7764451)  # the quantile of t with 4 degrees at .975
    assert difference.text(3) == "-0.024 ± 0.028"
    assert Difference(1.0, None, 1).text(0) == "+1 ± ?"


def test_wrong_verdicts_are_rarer_than_the_level():
    """Two equal methods, six comparisons of five runs each: 5 % wrong verdicts at most."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        differences = [paired_difference(*rng.standard_normal((2, 5))) for _ in range(6)]
        wrong += any(is_significant([difference.p_value for difference in differences]))
    assert wrong / 400 <= 0.08  # three standard errors above 5 %
