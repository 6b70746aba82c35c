"""docs/theorems.md names functions that exist where a user looks for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import certgp
import certgp.features.data_mercer
import certgp.gp
import certgp.guarantees

ROOMS = (certgp, certgp.guarantees, certgp.features, certgp.features.data_mercer, certgp.gp)
TEXT = (Path(__file__).parents[2] / "docs" / "theorems.md").read_text(encoding="utf-8")
ROWS = [line.rsplit("|", 2)[1] for line in TEXT.splitlines() if re.match(r"\| [A-Z]\d", line)]
NAMES = sorted({name for cell in ROWS for name in re.findall(r"`([A-Za-z_0-9.]+)`", cell)})


@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_the_table_is_exported(name):
    owner, _, method = name.partition(".")
    found = [getattr(room, owner) for room in ROOMS if hasattr(room, owner)]
    assert found, f"none of {', '.join(room.__name__ for room in ROOMS)} exports {owner}"
    assert not method or hasattr(found[0], method)
