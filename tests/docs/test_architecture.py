"""What docs/architecture.md names is there: files, folders, functions and classes."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "certgp"


def test_files_and_folders_exist() -> None:
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", PAGE))
    assert "gp/process.py" in named
    assert not [
        name
        for name in named
        if not any((root / name).exists() for root in (SOURCE, SOURCE / "training", SOURCE / "guarantees", ROOT))
    ]


def test_functions_and_classes_of_the_way_of_one_row_exist() -> None:
    way = PAGE[PAGE.index("## The way of one row") : PAGE.index("## Where a change belongs")]
    named = {word.rpartition(".")[2] for word in re.findall(r"`([A-Za-z_.]+)`", way) if not word.endswith(".py")}
    assert "certify_through" in named
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert not [word for word in named if not re.search(rf"\b(def|class) {word}\b|^    {word}: ", code, re.MULTILINE)]
