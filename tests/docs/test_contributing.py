"""CONTRIBUTING.md quotes files that other tests run: a block after ``<!-- file: path -->`` is that file, every word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MARK = re.compile(r"^<!-- file: (?P<path>.*?) -->\n(?P<rest>(?:.*\n)?)", re.MULTILINE)
FENCE = re.compile(r"```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def quoted_files(text: str) -> list[tuple[str, str]]:
    """Path and block of every quotation; a mark without a block right after it is an error."""
    quotations = []
    for mark in MARK.finditer(text):
        fence = FENCE.match(text, mark.start("rest"))
        assert fence is not None, f"no ```python block follows the line {mark[0].splitlines()[0]!r}"
        quotations.append((mark["path"], fence[1]))
    return quotations


def difference(path: str, block: str, root: Path = ROOT) -> str | None:
    """What is wrong with a quotation, or None."""
    file = root / path
    if not file.is_file():
        return f"CONTRIBUTING.md quotes {path}, which does not exist"
    if file.read_text(encoding="utf-8").strip() != block.strip():
        return f"the block in CONTRIBUTING.md differs from {path}; copy the file into it"
    return None


def test_quoted_files_are_what_they_say() -> None:
    problems = [difference(path, block) for path, block in quoted_files(TEXT)]
    assert not [problem for problem in problems if problem is not None]


def test_a_wrong_quotation_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("a = 1\n")
    page = "text\n\n<!-- file: kernel.py -->\n```python\n{}\n```\n\nmore\n\n```python\nb = 2\n```\n"
    [(path, block)] = quoted_files(page.format("a = 1"))
    assert difference(path, block, tmp_path) is None
    [(path, block)] = quoted_files(page.format("a = 2"))
    assert "differs from kernel.py" in str(difference(path, block, tmp_path))
    assert "does not exist" in str(difference("gone.py", block, tmp_path))
    with pytest.raises(AssertionError, match="no ```python block"):
        quoted_files("<!-- file: kernel.py -->\n\ntext\n\n```python\na = 1\n```\n")


def test_every_walk_through_is_there() -> None:
    for heading in ("Add a kernel", "Add a feature map and its estimator", "Add a recipe", "Add a theorem"):
        assert f"\n## {heading}\n" in TEXT
