"""How Sphinx builds the documentation (``make docs``): MyST Markdown, the pydata theme, nothing from the network."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent / "src"), str(DOCS.parent / "paper" / "src")]

from certgp.version import __version__ as release  # noqa: E402  the path comes first

project, author = "certgp", "The certgp developers"
copyright = f"2026, {author}. MIT licence"  # Sphinx's name for it
version = release

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "mathml",  # ours, as the next
    "docstrings",
]
exclude_patterns = ["_build"]

# Markdown: $mathematics$, headings as link targets two levels further down than any page goes
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# Docstrings (see _extensions/docstrings.py): signatures as users call them, types in the text where they matter
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

html_theme = "pydata_sphinx_theme"
html_title = "certgp"
html_static_path = ["_static"]
html_css_files = ["certgp.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "certgp"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_depth": 3,
    "collapse_navigation": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "reproduction": []},  # the page's own contents; room for claims
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "api": ["sidebar-nav-bs"]}
