"""Records of decisions have their four parts, a sensible length, and a place in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem[:4])
def test_a_record_is_short_and_complete(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert text.startswith(f"# {record.stem[:4]}: ")
    assert 20 <= len(text.splitlines()) <= 50
    headings = " ".join(re.findall(r"^## (.*)$", text, re.MULTILINE)).lower()
    assert all(part in headings for part in ("question", "options", "figures", "decision"))


def test_records_are_numbered_and_listed() -> None:
    assert [int(record.stem[:4]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for record in RECORDS:
        assert f"({record.name})" in index, f"docs/decisions/README.md does not list {record.name}"


def test_records_that_the_source_cites_exist() -> None:
    known = {record.stem[:4] for record in RECORDS}
    for folder in ("src", "paper/src", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            cited = re.findall(r"docs/decisions/(\w+)", text)
            assert set(cited) <= known, f"{file.relative_to(ROOT)} cites {cited}"
            pages = set(re.findall(r"docs/[\w/-]+\.md", text))
            missing = [page for page in pages if not (ROOT / page).exists()]
            assert not missing, f"{file.relative_to(ROOT)} names {missing}"
