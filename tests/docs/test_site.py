"""The built site in a real browser: nothing from the network, mathematics drawn, readable on a phone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chromium import CONTRAST, browsing, require_chromium

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("index", "theorems", "gallery", "api/estimators")


def is_fresh(site: Path) -> bool:
    """Was the site built after the last change of its pages? ``make check`` builds it before the tests."""
    sources = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".py", ".css")]
    built = site / "index.html"
    return built.is_file() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    if is_fresh(ROOT / "site"):
        return ROOT / "site"
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", str(ROOT / "docs"), str(folder)]
    subprocess.run(build, check=True)
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browsing(require_chromium(), tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_and_fits_a_phone(tab, site, name):
    tab.look(360, 740)
    tab.open(site / f"{name}.html")
    asked = [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")]
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
    assert not tab.of("Runtime.exceptionThrown")
    assert not [entry for entry in tab.of("Log.entryAdded") if entry["entry"]["level"] == "error"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_mathematics_is_drawn_without_scripts(tab, site):
    tab.look(1200, 900)
    tab.open(site / "theorems.html")
    sizes = tab.evaluate("[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().width)")
    assert len(sizes) > 300
    assert min(sizes) > 2
    assert "$" not in tab.evaluate("document.querySelector('article').innerText")
    assert not tab.evaluate("[...document.scripts].some(s => /mathjax|katex/i.test(s.src))")


@pytest.mark.parametrize("dark", [False, True])
def test_the_landing_page_can_be_read(tab, site, dark):
    tab.look(1200, 900, dark=dark)
    tab.open(site / "index.html")
    assert tab.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert tab.evaluate("document.querySelector('article img').naturalWidth") > 300
    ratio, text, count = tab.evaluate(CONTRAST.replace("document.body", "document.querySelector('main')"))
    assert count > 100
    assert ratio >= 4.5, f"{ratio:.2f} for {text!r}"
