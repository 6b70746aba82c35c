"""The page: whole, small, self-contained, safe, and true to the model."""

from __future__ import annotations

import re
import warnings
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from report_cases import pair_rows, wavy_rows

import certgp
from certgp import ExactGP
from certgp.data import as_rows
from certgp.errors import ConvergenceWarning, InvalidInputError
from certgp.estimators.reporting import gather_facts
from certgp.markup import Markup, tag
from certgp.report import Curve, input_charts, make_outputs_report

VOID = {"meta", "input", "br", "link", "hr"}


class Outline(HTMLParser):
    """Elements in order; fails where one is closed that was not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(page) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(text) -> Outline:
    found = Outline()
    found.feed(text)
    assert not found.open
    return found


def test_the_page_needs_nothing_from_outside(text, outline):
    assert len(text.encode()) < 1_500_000
    assert not re.findall(r"https?://|//cdn|@import|url\(", text)
    assert not [attrs for name, attrs in outline.seen if "src" in attrs or name in ("link", "iframe", "img")]
    links = [attrs["href"] for name, attrs in outline.seen if name == "a"]
    ids = {attrs["id"] for _, attrs in outline.seen if "id" in attrs}
    assert links
    assert all(str(link).removeprefix("#") in ids for link in links)
    assert "default-src 'none'" in unescape(text)


def test_names_of_columns_cannot_become_markup(text, outline):
    assert "<b>height" not in text
    assert "&lt;b&gt;height&lt;/b&gt;" in text
    assert "alert(1)</script>" not in text
    assert sum(name == "script" for name, _ in outline.seen) == 2  # the data of the slider, and its code


def test_ids_are_unique_and_every_drawing_has_words(outline):
    ids = [attrs["id"] for _, attrs in outline.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    drawings = [attrs for name, attrs in outline.seen if name == "svg"]
    assert len(drawings) >= 10
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in drawings)


def test_no_row_of_the_data_is_on_the_page(text):
    X, y = wavy_rows(200, 1)
    for value in [*X.to_numpy().ravel()[:60], *y[:60]]:
        assert f"{value:.6f}" not in text


def test_the_facts_are_those_of_the_model(fitted):
    X, y = wavy_rows(200, 1)
    held_out, train = as_rows(X, y), fitted.models[0].rows
    facts = gather_facts(fitted, held_out, train)
    assert facts.card.model.nlpd == pytest.approx(fitted.nlpd(X, y))
    lower, upper = fitted.predict_interval(X, 0.8)
    assert facts.card.model.coverage(0.8) == pytest.approx(np.mean((lower <= y) & (y <= upper)))
    curve = fitted.rank_curve(X, y)
    last = facts.ranks[-1]
    assert last.rank == fitted.rank_
    assert last.nlpd == pytest.approx(curve.nlpd[-1])
    assert last.shift == pytest.approx(np.sqrt(2 * curve.kl_bound[-1] / 400))
    names = [effect.name for effect in facts.effects]
    assert names[0] == "<b>height</b>"
    assert names[-1] == "idle"
    assert abs(facts.effects[-1].relevance) < 0.1 < facts.effects[1].relevance
    (slope,) = facts.effects[1].curves  # y grows by one with each unit of the second input
    assert (slope.mean[-1] - slope.mean[0]) / (slope.grid[-1] - slope.grid[0]) == pytest.approx(1.0, abs=0.15)
    assert np.all(slope.lower < slope.upper)
    assert facts.certificate.verdict in ("negligible", "small", "noticeable")


def test_a_loaded_model_without_training_rows_says_what_is_left_out(fitted, tmp_path):
    fitted.save(tmp_path / "m.model")
    X, y = wavy_rows(60, 1)
    facts = gather_facts(certgp.load(tmp_path / "m.model"), as_rows(X, y), None)
    assert facts.card.baselines == ()
    assert "60 held-out rows" in facts.advice[0].what
    assert "predictive standard deviations" in str(facts.certificate.numbers)


def test_training_rows_given_as_new_ones_are_noticed(fitted):
    rows = fitted.models[0].rows
    page = fitted.report(rows)
    assert "These rows are the training rows." in page.html


def test_an_exact_gp_has_no_rank_to_choose():
    X, y = wavy_rows(60, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp = ExactGP(max_iter=5, noise="constant").fit(X, y)
    page = gp.report(*wavy_rows(40, 1), title="Exact")
    assert "There is none to choose: this model keeps all training rows." in page.html
    assert "rank-slider" not in page.html
    assert "script-src 'none'" in unescape(page.html)
    assert "nothing is approximated" in page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_several_outputs_have_a_part_each_and_share_the_room(pair, both, tmp_path):
    text = both.read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(text)
    ids = [attrs["id"] for _, attrs in outline.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {str(attrs["href"]).removeprefix("#") for name, attrs in outline.seen if name == "a"}
    assert links <= set(ids)
    assert {"output0-part", "output1-part", "output0-rank", "output1-proven"} <= links
    assert [name for name, _ in outline.seen if name in ("h1", "h2")] == ["h1", "h2", "h2", "h2"]
    X, y = pair_rows(80, 1)
    facts = gather_facts(pair.outputs_[0], as_rows(X, y[:, 0]), None)
    short = make_outputs_report("small", [facts, facts], most_bytes=70_000).html
    assert len(short) < 100_000
    assert short.count("Charts of this output have no room") == 1
    with pytest.raises(InvalidInputError, match="the outputs are 0, 1"):
        pair.report(X, y, outputs=["z"])
    with pytest.raises(InvalidInputError, match="the outputs are 0, 1"):
        pair.report(X, y, outputs="01")  # a name, and not two of them
    with pytest.raises(InvalidInputError, match="outputs is empty; name one or more of 0, 1"):
        pair.report(X, y, outputs=[])
    y[1:, 1] = np.nan
    assert "<h1>A model of output 0</h1>" in pair.report(X[:9], y[:9], outputs=[0]).html
    with pytest.raises(InvalidInputError, match="output 1 of y has 1 row"):
        pair.report(X, y)


@pytest.mark.parametrize(("count", "is_cut"), [(20, False), (21, True)])
def test_names_that_have_no_room_are_counted(count, is_cut):
    at = np.arange(float(count))
    drawn = input_charts.effect(
        Curve("place", at, at, at - 1, at + 1, tuple(f"p{k}" for k in range(count))), (0, 21), "y"
    )
    assert ("the first 20 of 21 values" in drawn) is is_cut
    assert f"p{count - 1}</t" in drawn  # the last one is in the table


def test_one_row_is_not_enough(fitted):
    X, y = wavy_rows(1, 1)
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        fitted.report(X, y)


def test_elements_escape_what_is_not_markup():
    assert tag("p", "a < b", Markup("<b>c</b>"), class_="x", hidden=True, title=None) == (
        '<p class="x" hidden>a &lt; b<b>c</b></p>'
    )
    assert tag("a", "x", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
