"""A constant factor dropped or a term removed makes the soundness checks fail, for every theorem id."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest
from local_statements import local_violations
from mutations import MUTATIONS, Mutation, apply
from probabilistic import CHECKS
from small_problems import draw_problem, tight_problems, violations

ROOT = Path(__file__).resolve().parents[2]
RANDOM_PROBLEMS = 400


def is_noticed(theorem: str) -> bool:
    """Does any check of this theorem fail now?"""
    if theorem in CHECKS:
        return not CHECKS[theorem]()
    if theorem.startswith("V") and not theorem.startswith("V7"):  # V7 is about any weights: every problem checks it
        return any(theorem in local_violations(problem) for problem in map(draw_problem, range(RANDOM_PROBLEMS)))
    problems = chain(tight_problems(), map(draw_problem, range(RANDOM_PROBLEMS)))
    return any(theorem in violations(problem) for problem in problems)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_weakened_bound_is_noticed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(mutation, monkeypatch)
    assert is_noticed(mutation.theorem)


def test_every_theorem_of_the_docs_has_a_mutation() -> None:
    text = (ROOT / "docs" / "theorems.md").read_text()
    ids = set(re.findall(r"^\| ([A-Z]\d\+?) \|", text, re.MULTILINE))
    assert ids - {"X0"} == {mutation.theorem.split()[0] for mutation in MUTATIONS}
