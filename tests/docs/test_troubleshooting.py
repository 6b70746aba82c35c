"""docs/troubleshooting.md quotes messages that the source really has."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


@functools.cache
def texts_of_the_source() -> str:
    """Every string of the package, pieces between the values of an f-string apart."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in (ROOT / "src").rglob("*.py"))
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return "\n".join(value for value in constants if isinstance(value, str))


def quoted_messages(page: str) -> list[str]:
    """The first column of the tables of messages; each `...` stands for something else in every case."""
    cells = re.findall(r"^\| (`.*?`) (?:\(`\w+`\) )?\|", page, re.MULTILINE)
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def missing(message: str, source: str) -> list[str]:
    return [part for part in message.split("...") if part.strip() and part.strip() not in source]


def test_every_message_is_in_the_source() -> None:
    messages, source = quoted_messages(PAGE), texts_of_the_source()
    assert len(messages) > 35
    assert not [(message, missing(message, source)) for message in messages if missing(message, source)]


def test_a_message_that_changed_would_be_noticed() -> None:
    page = "| `the fit stopped before it converged: ...` (`ConvergenceWarning`) | text |\n| `no such words` | x |\n"
    found = quoted_messages(page)
    assert found == ["the fit stopped before it converged: ...", "no such words"]
    assert [bool(missing(message, texts_of_the_source())) for message in found] == [False, True]


def test_every_warning_is_explained() -> None:
    errors = (ROOT / "src" / "certgp" / "errors.py").read_text(encoding="utf-8")
    warnings = set(re.findall(r"^class (\w+Warning)\(CertgpWarning\)", errors, re.MULTILINE))
    assert warnings <= set(re.findall(r"`(\w+Warning)`", PAGE)), "add the new warning to docs/troubleshooting.md"
