"""Files and fits of the commit before the house was rebuilt: they load, and say what they said.

``models/`` holds files of format 2, ``fits.json.gz`` what the models behind them said of new rows, their certificates
and their rank curves. Fits that learn nothing are plain linear algebra and are made again here. Trained ones are
compared by ``record.py`` alone, on the machine on which they were recorded: an optimiser amplifies the last bit in
which another processor, or another number of threads, differs. So do the greedy choices of a reference.
"""

from __future__ import annotations

import json

import numpy as np
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
# The points of their reference are chosen greedily, and a tie falls as the last bit does: two records are brackets of
# the same truth rather than the same numbers.
GREEDY = tuple(f"certificate {how}" for how in ("reference", "tolerance", "delta", "solved"))
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
        if what in GREEDY and recorded != "refused":
            check_same_truth(said[what], recorded)
        else:
            assert not list(differences(said[what], recorded, f"{name}: {what}", TOLERANCE))


def brackets(certificate):
    """Every proven bracket of it, as lower and upper ends."""
    for name in ("kl", "reverse_kl", "log_evidence"):
        yield name, *certificate[name]
    if certificate["predictive_kl"] is not None:
        yield "predictive_kl", *certificate["predictive_kl"]["interval"]
    for lower, upper in (("variance_lower", "variance_upper"), ("mean_error_lower", "mean_error")):
        if certificate[lower] is not None:
            yield upper, np.array(certificate[lower]), np.array(certificate[upper])


def check_same_truth(found, recorded):
    """Brackets overlap, and none has become twice as wide; what they are about is the same."""
    assert found.keys() == recorded.keys()
    for fact in ("n_rows", "confidence", "kernel_inputs"):
        assert found.get(fact) == recorded.get(fact), fact
    for (name, lower, upper), (_, low, high) in zip(brackets(found), brackets(recorded), strict=True):
        slack = TOLERANCE * np.maximum(np.abs(high), 1e-12)
        assert np.all(lower <= high + slack), name
        assert np.all(low <= upper + slack), name
        assert np.max(upper - lower) <= 2.0 * np.max(high - low) + np.max(slack), name


def test_a_difference_would_be_noticed(record):
    known = record["kept-mercer"]["predictions"]
    other = json.loads(json.dumps(known)) | {"nlpd": known["nlpd"] * (1.0 + 1e-8)}
    [found] = differences(other, known, "kept-mercer", TOLERANCE)
    assert found.startswith("kept-mercer.nlpd: differs by")
    assert list(differences({"mean": 1.0}, {"mean": [1.0, 2.0]}, "", TOLERANCE)) == [".mean: shape () instead of (2,)"]


def test_a_false_or_a_wide_bracket_would_be_noticed(record):
    known = record["kept-mercer"]["certificate tolerance"]
    check_same_truth(known, known)
    for kl in ([20.5, 20.7], [20.0, 21.0]):
        with pytest.raises(AssertionError):
            check_same_truth(known | {"kl": kl}, known)
    with pytest.raises(AssertionError, match="confidence"):
        check_same_truth(known | {"confidence": 0.99}, known)


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
