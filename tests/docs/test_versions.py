"""The version is the same wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import certgp

ROOT = Path(__file__).resolve().parents[2]


def found(path: str, pattern: str) -> str:
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, f"{path} names no version"
    return match[1]


def test_the_version_is_written_alike_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == certgp.__version__
    assert found("CITATION.cff", r"^version: (\S+)$") == certgp.__version__
    assert found("CHANGELOG.md", r"^## \[(\d+\.\d+\.\d+)\]") == certgp.__version__  # the newest, first in the file
