"""Files and fits of the commit before the house was rebuilt: they load, and say what they said.

``models/`` holds files of format 2, ``fits.json.gz`` what the models behind them said of new rows, their certificates
and their rank curves. Fits that learn nothing are plain linear algebra and are made again here. Trained ones are
compared by ``record.py`` alone, on the machine on which they were recorded: an optimiser amplifies the last bit in
which another processor, or another number of threads, differs.
"""

from __future__ import annotations

import json

import pytest
from cases import (
    CASES,
    CHANGED,
    KEPT,
    MODELS,
    RECORD,
    differences,
    fitted,
    plain,
    predictions,
    read_record,
    rows,
    statements,
)
from safetensors import safe_open

import certgp
from certgp.errors import NotCertifiableError

TOLERANCE = 1e-9  # relative to the largest number of an array
ITERATED = {"certificate tolerance": 1e-6, "certificate solved": 1e-6}  # small residuals, and conjugate gradients
LARGEST = 300_000  # bytes


@pytest.fixture(scope="module")
def record():
    return read_record()


def test_every_case_is_recorded_and_has_its_file(record):
    assert record.keys() == CASES.keys() == {path.stem for path in MODELS.glob("*.model")}
    assert RECORD.stat().st_size < LARGEST
    assert sum(path.stat().st_size for path in MODELS.iterdir()) < LARGEST


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_format_2_predicts_as_recorded(name, record):
    path = MODELS / f"{name}.model"
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["format_version"] == "2"
    found = plain(predictions(certgp.load(path), CASES[name][2]))
    assert not list(differences(found, record[name]["predictions"], name, TOLERANCE))


@pytest.mark.parametrize("name", [name for name in KEPT if name not in CHANGED])
def test_fits_that_learn_nothing_are_made_again(name, record):
    _, n, columns = CASES[name]
    model = fitted(name)
    said = plain({"predictions": predictions(model, columns)} | statements(model, columns, rows(n, columns)))
    assert said.keys() == record[name].keys()
    for what, recorded in record[name].items():
        assert not list(differences(said[what], recorded, f"{name}: {what}", ITERATED.get(what, TOLERANCE)))


def test_a_difference_would_be_noticed(record):
    known = record["kept-mercer"]["predictions"]
    other = json.loads(json.dumps(known)) | {"nlpd": known["nlpd"] * (1.0 + 1e-8)}
    [found] = differences(other, known, "kept-mercer", TOLERANCE)
    assert found.startswith("kept-mercer.nlpd: differs by")
    assert list(differences({"mean": 1.0}, {"mean": [1.0, 2.0]}, "", TOLERANCE)) == [".mean: shape () instead of (2,)"]


def test_files_of_format_2_are_saved_in_the_present_format(record, tmp_path):
    model = certgp.load(MODELS / "sparse.model")
    model.save(tmp_path / "sparse.model")
    with safe_open(tmp_path / "sparse.model", framework="pt") as file:
        assert file.metadata()["format_version"] == "3"
    found = plain(predictions(certgp.load(tmp_path / "sparse.model"), CASES["sparse"][2]))
    assert not list(differences(found, record["sparse"]["predictions"], "sparse", TOLERANCE))


def test_certificates_of_format_2_speak_of_the_gp_on_the_users_own_inputs():
    """They did not where inputs were winsorised: such a one is forgotten, and others name a network."""
    assert certgp.load(MODELS / "sparse-auto.model").certify().kernel_inputs is None
    assert "network" in certgp.load(MODELS / "deep-mercer-auto.model").certify().sentence()
    with pytest.raises(NotCertifiableError, match="rows="):
        certgp.load(MODELS / "fourier-auto.model").certify()
