"""Mathematics as MathML, written when the site is built: browsers draw it without script, font or network."""

from __future__ import annotations

import re
from html import unescape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator


def _letter(match: re.Match[str]) -> str:
    """One letter as a variable: CSS draws it, slanted unless it is a Greek capital, in the letters of an ordinary font.

    Browsers would take it from the mathematical alphabets of Unicode, which few fonts have whole.
    """
    letter = unescape(match[1])
    if len(letter) > 1:
        return match[0]
    if letter in "\u2aaf\u2ab0":  # order of matrices, which the converter takes for letters
        return f'<mo lspace="0.28em" rspace="0.28em">{match[1]}</mo>'
    if not letter.isalpha():  # brackets and other signs
        return f"<mo>{match[1]}</mo>"
    is_greek_capital = letter.isupper() and letter > "\u0370"
    return f'<mi class="{"upright" if is_greek_capital else "variable"}">{match[1]}</mi>'


def to_mathml(latex: str, display: str) -> str:
    """One formula; what the converter does not know is an error that shows the formula."""
    try:
        text = re.sub(r"<mi>([^<]+)</mi>", _letter, convert(latex, display=display))
    except Exception as error:
        raise ExtensionError(f"this formula cannot be turned into MathML: {latex!r}", error) from error
    return _with_space(text)


def _with_space(text: str) -> str:
    """Space after functions that no parenthesis follows."""
    return re.sub(r"<mi>(log|ln|exp)</mi>(?!<mo[^>]*>(?:\(|&#x00028;))", r'<mi>\1</mi><mspace width="0.17em" />', text)


def visit_inline(writer: HTML5Translator, node: nodes.Element) -> None:
    """A formula in a line of text."""
    writer.body.append(f'<span class="math">{to_mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.Element) -> None:
    """A formula on a line of its own."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(to_mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
