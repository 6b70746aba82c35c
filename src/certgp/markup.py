"""HTML and SVG elements as text. Everything that is not markup already is escaped."""

from __future__ import annotations

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
