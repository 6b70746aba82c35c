"""Docstrings as this project writes them, for Sphinx: formulas in plain characters, parameters as ``name : text``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

_LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
_MARKS = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")
_ITEM = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<text>.*)$")


def escape(line: str) -> str:
    """Stars, bars, backslashes and trailing underscores mean themselves, but in ``literals``."""
    parts = _LITERAL.split(line)
    return "".join(part if i % 2 else _MARKS.sub(r"\\\1", part) for i, part in enumerate(parts))


def sections(lines: list[str]) -> Iterator[str]:
    """reStructuredText of a docstring: headings become rubrics, parameters a definition list."""
    in_item = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        item = _ITEM.match(line)
        if set(line) == {"-"}:
            continue
        if line and set(following) == {"-"} and len(following) == len(line):
            yield from ("", f".. rubric:: {line}", "")
        elif item is not None:
            names = ", ".join(f"``{name}``" for name in item["names"].split(", "))
            yield from ("", names, f"    {escape(item['text'])}")
        elif in_item and line.startswith(" "):
            yield f"    {escape(line.strip())}"
        else:
            yield escape(line)
        in_item = item is not None or (in_item and line.startswith(" "))


def rewrite(app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]) -> None:
    """What autodoc calls for every docstring."""
    lines[:] = list(sections(lines))


def leave_out(app: Sphinx, what: str, name: str, found: object, skip: bool, options: object) -> bool | None:
    """What scikit-learn writes into every estimator, and what estimators owe the library, not their users."""
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if is_request or name in ("trainer", "trainer_parameters") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
