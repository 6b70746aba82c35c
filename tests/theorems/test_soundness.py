"""2,000 random problems: no statement of any theorem is ever false (20,000 by ``make soundness``)."""

from __future__ import annotations

import pytest
from local_statements import local_violations
from small_problems import (
    INPUT_LAWS,
    composed_problems,
    draw_outputs,
    draw_problem,
    far_problems,
    tight_problems,
    violations,
)

PER_BLOCK = 100
LOCAL_PROBLEMS = 60  # they take longer


@pytest.mark.parametrize("block", range(20))
def test_no_statement_is_violated(block: int) -> None:
    seeds = range(block * PER_BLOCK, (block + 1) * PER_BLOCK)
    problems = [(seed, problem) for seed in seeds for problem in draw_outputs(seed)]
    broken = {seed: found for seed, problem in problems if (found := violations(problem))}
    assert broken == {}


def test_problems_at_which_bounds_are_attained() -> None:
    assert [violations(problem) for problem in tight_problems()] == [[]] * len(tight_problems())


def test_clusters_that_are_many_length_scales_apart() -> None:
    broken = {number: found for number, problem in enumerate(far_problems()) if (found := violations(problem))}
    assert broken == {}


@pytest.mark.parametrize("law", INPUT_LAWS)
def test_sums_products_and_other_families(law: str) -> None:
    broken = {number: found for number, problem in enumerate(composed_problems(law)) if (found := violations(problem))}
    assert broken == {}


def test_no_statement_about_a_local_gp_is_violated() -> None:
    broken = {seed: found for seed in range(LOCAL_PROBLEMS) if (found := local_violations(draw_problem(seed)))}
    assert broken == {}


def test_local_gps_with_sums_products_and_other_families() -> None:
    problems = enumerate(composed_problems("gaussian"))
    broken = {number: found for number, problem in problems if (found := local_violations(problem))}
    assert broken == {}
