"""Statements with a stated probability fail no more often than they say."""

from __future__ import annotations

import pytest
from probabilistic import CHECKS


@pytest.mark.parametrize("theorem", CHECKS)
def test_failures_are_as_rare_as_stated(theorem: str) -> None:
    assert CHECKS[theorem]()
