"""certgp demo, on small versions of its experiments that are run once."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from certgp.cli import demo_surface as surface
from certgp.training import Callback, Iteration


@pytest.fixture(scope="module")
def small_result() -> surface.SurfaceResult:
    return surface.run_surface(n=1000, rank=25)


@pytest.fixture
def small_demo(monkeypatch, small_result) -> None:
    def quick_surface(callbacks: tuple[Callback, ...]) -> surface.SurfaceResult:
        for callback in callbacks:
            callback(Iteration(1, 0.5, 1.0, 0.1, 25))
        return small_result

    monkeypatch.setattr(surface, "run_surface", quick_surface)


@pytest.mark.usefixtures("small_demo")
def test_scores_are_printed_and_plots_written(certgp):
    outcome = certgp("demo", "--out", "pictures")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    for words in ("Mercer GP of rank 25", "noise 0.1", "NLPD", "truth in the 95% band", "certified: The exact GP and"):
        assert words in outcome.out
    assert sorted(p.name for p in Path("pictures").iterdir()) == ["history.png", "surface.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in Path("pictures").iterdir())


@pytest.mark.usefixtures("small_demo")
def test_json(certgp, small_result):
    fields = json.loads(certgp("demo", "--json").out)
    assert fields["certificate"]["kl"][1] == small_result.certificate.kl.upper
    assert fields["surface"]["rmse"] == small_result.scores.rmse
    assert fields["surface"]["truth_coverage"] == small_result.truth_coverage
    assert fields["plots"][0] == "certgp-demo/surface.png"


@pytest.mark.usefixtures("small_demo")
def test_without_matplotlib_scores_are_printed_and_the_remedy_named(certgp, monkeypatch):
    drawing = [name for name in sys.modules if name.split(".")[0] == "matplotlib" or name.startswith("certgp.plots")]
    for name in drawing:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = certgp("demo")
    assert outcome.code == 0
    assert "NLPD" in outcome.out
    assert "plots:" not in outcome.out
    assert outcome.err == "note: no plots without matplotlib; get it with: pip install 'certgp[plots]'\n"
