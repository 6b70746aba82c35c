"""The pages in a real browser: they predict, complain about nothing, and ask nobody but their own server."""

from __future__ import annotations

import time

import pytest
from running import serving

from certgp.serving import Limits, ServedModel
from chromium import CONTRAST, browsing, require_chromium
from table_cases import small_table_gp

SHOWN = "Object.fromEntries(['mean', 'interval', 'std', 'note'].map(k => [k, document.getElementById(k).textContent]))"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browsing(require_chromium(), tmp_path_factory.mktemp("profile")) as found:
        found.look(1100, 900)
        yield found


def wait_for(tab, expression):
    deadline = time.monotonic() + 20
    while not tab.evaluate(expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.02)


def send_form(tab, height):
    tab.evaluate(f"document.getElementById('x0').value = {height}; document.getElementById('mean').textContent = '';")
    tab.evaluate("document.querySelector('button').click()")
    wait_for(tab, "document.getElementById('mean').textContent !== ''")
    return tab.evaluate(SHOWN)


def test_the_form_predicts_and_nothing_leaves_the_machine(tab, server):
    home = f"http://127.0.0.1:{server.port}"
    tab.visit(f"{home}/")
    row = [float(tab.evaluate(f"document.getElementById('x{j}').value")) for j in range(3)]
    shown, told = send_form(tab, 1.25), server.predict({"rows": [[1.25, *row[1:]]]}).json()
    assert float(shown["mean"]) == pytest.approx(told["mean"][0], rel=1e-4)
    assert float(shown["interval"].split(" to ")[1]) == pytest.approx(told["upper"][0], rel=1e-4)
    assert shown["note"] == ""
    assert "outside" in send_form(tab, 99)["note"]
    tab.visit(f"{home}/docs")
    assert tab.evaluate("document.querySelectorAll('h2').length") == 5
    asked = {event["request"]["url"] for event in tab.of("Network.requestWillBeSent")}
    assert all(url.startswith(home) for url in asked), asked
    assert not tab.of("Log.entryAdded") + tab.of("Runtime.exceptionThrown")


def test_the_form_of_a_table_sends_choices_texts_and_gaps(tab):
    model, shown = small_table_gp(), "document.getElementById('mean').textContent"
    with serving(model, Limits()) as server:
        tab.look(1100, 900)
        tab.visit(f"http://127.0.0.1:{server.port}/")
        assert tab.evaluate("document.getElementById('x1').tagName") == "SELECT"
        for value, note in (("red", ""), ("", "1 gap(s) were filled in")):
            tab.evaluate(f"document.getElementById('x1').value = '{value}'; {shown} = '';")
            tab.evaluate("document.querySelector('button').click()")
            wait_for(tab, f"{shown} !== ''")
            record = dict(zip(model.encoding_.inputs, ServedModel(model, "m").inputs.example(), strict=True))
            told = server.predict({"records": [record | {"colour": value or None}]}).json()
            assert float(tab.evaluate(shown).replace(",", "")) == pytest.approx(told["mean"][0], rel=1e-4)
            assert note in tab.evaluate(SHOWN)["note"]
        assert not tab.of("Log.entryAdded") + tab.of("Runtime.exceptionThrown")
        tab.evaluate("document.getElementById('x0').value = 'soon'; document.querySelector('button').click()")
        wait_for(tab, "document.getElementById('note').textContent.includes('soon')")
        assert tab.evaluate(shown) == "…"  # not the answer of before


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_pages_are_readable_on_a_phone_and_in_the_dark(tab, server, page):
    tab.look(1100, 900)
    tab.visit(f"http://127.0.0.1:{server.port}{page}")
    for dark in (False, True):
        tab.look(340, 740, dark=dark)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 340
        ratio, text, count = tab.evaluate(CONTRAST)
        assert count > 30
        assert ratio >= 4.5, f"{ratio:.2f} for {text!r}"
