"""The page in a real browser: drawn, quiet, alone, usable by keyboard, on a phone and in the dark."""

from __future__ import annotations

import pytest

from chromium import CONTRAST, browsing, require_chromium

SHOWN = """
Object.fromEntries(["rank", "bound", "score", "memory", "time"].map(
  (key) => [key, document.getElementById("rank-" + key).textContent]))
"""


@pytest.fixture(scope="module")
def tab(page, tmp_path_factory):
    chromium = require_chromium()
    with browsing(chromium, tmp_path_factory.mktemp("profile")) as found:
        found.look(1100, 900)
        found.open(page)
        yield found


def test_charts_are_drawn_and_nothing_is_asked_for_or_complained_about(tab, page):
    sizes = tab.evaluate("[...document.querySelectorAll('figure svg')].map(s => [s.clientWidth, s.clientHeight])")
    assert len(sizes) >= 10
    assert all(width > 200 and height > 80 for width, height in sizes)
    shapes = tab.evaluate("document.querySelectorAll('figure svg :is(polyline, rect, circle, polygon)').length")
    assert shapes > 100
    assert [event["request"]["url"] for event in tab.of("Network.requestWillBeSent")] == [page.as_uri()]
    assert not tab.of("Log.entryAdded")
    assert not tab.of("Runtime.exceptionThrown")
    assert not tab.of("Runtime.consoleAPICalled")


def test_the_slider_changes_all_numbers_by_keyboard(tab):
    before, marks = tab.evaluate(SHOWN), tab.evaluate("document.getElementById('dot-first').getAttribute('cx')")
    tab.evaluate("document.getElementById('rank-slider').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key="Home", code="Home", windowsVirtualKeyCode=36)
    after = tab.evaluate(SHOWN)
    assert before["rank"] == "25"
    assert after["rank"] == "1"
    assert all(before[key] != after[key] for key in before), (before, after)
    assert tab.evaluate("document.getElementById('dot-first').getAttribute('cx')") != marks
    assert tab.evaluate("document.getElementById('rank-slider').getAttribute('aria-valuetext')") == "rank 1"


@pytest.mark.parametrize("width", [320, 360, 768])
def test_no_sideways_scrolling(tab, width):
    tab.look(width, 740)
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    scores = "(t => t.scrollWidth <= t.clientWidth)(document.querySelector('#scores .scroll'))"
    assert width < 360 or tab.evaluate(scores)
    sizes = tab.evaluate(
        "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    assert min(left for left, _ in sizes) >= -1
    assert max(right for _, right in sizes) <= width + 1
    right = "(each) => each.getBoundingClientRect().right"
    own = f"(svg) => [svg, ...svg.querySelectorAll('text')].map({right})"
    ends = tab.evaluate(f"[...document.querySelectorAll('svg')].map({own})")
    assert all(max(own) <= right + 1 for right, *own in ends)  # nothing is cut off


@pytest.mark.parametrize(("dark", "media"), [(False, "screen"), (True, "screen"), (True, "print")])
def test_text_can_be_read(tab, dark, media):
    tab.look(1100, 900, dark=dark, media=media)
    ratio, text, count = tab.evaluate(CONTRAST)
    assert count > 300
    assert ratio >= 4.5, f"{ratio:.2f} for {text!r}"
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in background[4:-1].split(",")) < 60) == (dark and media == "screen")


def test_it_is_readable_without_scripts_and_on_paper(tab, page):
    tab.look(800, 1000, media="print")
    assert tab.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    tab.look(1100, 900)
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page)
    tab.send("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.evaluate("document.getElementById('rank-chooser').hidden")
    assert tab.evaluate("document.getElementById('rank-rank').textContent") == "25"
    assert tab.evaluate("document.querySelectorAll('#rank tbody tr').length") > 5


def test_a_page_about_two_outputs(tab, both):
    tab.look(360, 740, dark=True)
    tab.open(both)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.evaluate(CONTRAST)[0] >= 4.5
    shown = "[...document.querySelectorAll('.output')].map((each) => each.offsetHeight > 0)"
    assert tab.evaluate(shown) == [True, True]  # as without scripts
    chooser = "document.getElementById('output-choice')"
    tab.evaluate(f"{chooser}.value = 'output1-part'; {chooser}.dispatchEvent(new Event('input'))")
    assert tab.evaluate(shown) == [False, True]
    tab.evaluate("document.querySelector('a[href=\"#output0-part\"]').click()")
    tab.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert tab.evaluate(shown) == [True, False]
    for j in (0, 1):
        rank = f"document.getElementById('output{j}-rank-rank').textContent"
        slider = f"document.getElementById('output{j}-rank-slider')"
        assert tab.evaluate(rank) == "12"
        tab.evaluate(f"{slider}.value = 0; {slider}.dispatchEvent(new Event('input'))")
        assert tab.evaluate(rank) == "1"
    assert not tab.of("Runtime.exceptionThrown")
    assert not tab.of("Log.entryAdded")
