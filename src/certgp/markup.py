"""HTML and SVG elements as text. Everything that is not markup already is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Self

Child = "str | float | Markup | None"


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()

    @classmethod
    def join_all(cls, parts: list[Markup]) -> Self:
        """Several elements one after the other."""
        return cls("".join(parts))


def tag(name: str, /, *children: str | float | None, **attributes: str | float | bool | None) -> Markup:
    """An element. Attributes: ``class_`` is class, ``aria_label`` is aria-label; True stands alone, None is left out.

    Children that are ``Markup`` stay as they are, other text is escaped, None is left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(_text(child) for child in children if child is not None)}</{name}>")


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Rows under a header, in the style of whatever page shows it, such as a notebook."""
    head = [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))] if header else []
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag("table", *head, tag("tbody", *lines))


def two_columns(rows: Sequence[tuple[str, str]]) -> Markup:
    """Names and values."""
    return plain_table([], rows)


def lower_headings(markup: Markup) -> Markup:
    """The same with every heading one level down; text cannot be mistaken for one, because it is escaped."""
    return Markup(re.sub(r"(?<=[</]h)[1-5](?=[ >])", lambda found: str(int(found[0]) + 1), markup))


_VOID = ("meta", "link", "br", "input", "hr")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    name = "viewBox" if name == "viewbox" else name
    return f" {name}" if value is True else f' {name}="{escape(number(value))}"'


def _text(child: str | float) -> str:
    return child if isinstance(child, Markup) else escape(number(child), quote=False)


def number(value: str | float) -> str:
    """Numbers with two decimals, which is finer than a screen; text as it is."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
