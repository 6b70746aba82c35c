"""certgp demo on a part of its places."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from certgp.data.examples import rain_file

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")  # so few places


def test_the_story_has_data_scores_certificate_and_report(certgp):
    outcome = certgp("demo", "--rows", "300", "--out", "rain")
    assert outcome.code == 0, outcome.err
    for words in (
        "NOAA, public domain",
        "LocalGP learned from 270 places",
        "30 held-out rows",
        "linear",
        "gradient boosting",
        "Computing without approximation would move a typical prediction by at most",
        "It does not say that the exact GP is right",
        "report   rain/rain.html (",
        "certgp fit rain/rain.csv --target log10_rain --method local",
    ):
        assert words in outcome.out
    assert sorted(path.name for path in Path("rain").iterdir()) == ["rain.csv", "rain.html", "rain.png"]
    assert Path("rain/rain.png").read_bytes().startswith(b"\x89PNG")
    assert "What is proven" in Path("rain/rain.html").read_text()
    assert Path("rain/rain.csv").read_bytes() == rain_file().read_bytes()


def test_json_and_no_matplotlib(certgp, monkeypatch):
    drawing = [name for name in sys.modules if name.split(".")[0] == "matplotlib" or name.startswith("certgp.plots")]
    for name in drawing:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = certgp("demo", "--rows", "200", "--json")
    fields = json.loads(outcome.out)
    assert fields["n_train"] == 180
    assert fields["picture"] is None
    assert fields["certificate"]["kl"][0] <= fields["certificate"]["kl"][1]
    assert list(fields["card"]["scores"]) == ["this model", "constant", "linear", "gradient boosting"]
    assert "note: no picture without matplotlib; get it with: pip install 'certgp[plots]'\n" in outcome.err


def test_too_few_places_are_refused(certgp):
    assert "--rows 20 are too few to hold any out; give at least 200" in certgp("demo", "--rows", "20").error()


def test_the_data_are_as_their_description_says():
    lines = rain_file().read_text().splitlines()
    assert lines[0] == "longitude,latitude,log10_rain"
    assert len(lines) == 4_001
    assert "public domain" in rain_file().with_suffix(".txt").read_text()
