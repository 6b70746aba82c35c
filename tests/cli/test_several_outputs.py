"""A model of several outputs on the command line: predictions for each, and clear words where one is needed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from cli_cases import COLUMNS, rows, write

from certgp import SparseGP
from certgp.data import ArrayRows

VALUES = rows(60)


@pytest.fixture
def two(tmp_path):
    gp = SparseGP(8, length_scale=1.0, optimize=False, random_state=0)
    gp.fit(ArrayRows(VALUES[:, :2], np.stack([VALUES[:, 2], -3.0 * VALUES[:, 2]], 1), ("a", "b")))
    gp.save(tmp_path / "two.model")
    return gp


def test_predict_writes_a_group_of_columns_for_each_output(certgp, two, tmp_path) -> None:
    new = write(tmp_path / "new.csv", VALUES[:9])
    outcome = certgp("predict", "two.model", new, "--out", "out.csv")
    assert outcome.code == 0
    table = pa_csv.read_csv(tmp_path / "out.csv")
    assert table.column_names == [f"{name}_{j}" for j in range(2) for name in COLUMNS]
    mean, std = two.predict(ArrayRows(VALUES[:9, :2], names=("a", "b")), return_std=True)
    for j in range(2):
        np.testing.assert_allclose(table[f"mean_{j}"], mean[:, j], rtol=1e-6)
        np.testing.assert_allclose(table[f"std_{j}"], std[:, j], rtol=1e-6)


def test_each_output_is_certified(certgp, two, tmp_path) -> None:
    new = write(tmp_path / "new.csv", VALUES[:9])
    outcome = certgp("certify", "two.model", new, "--out", "bounds.csv", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["outputs"]
    assert list(found) == ["0", "1"]
    expected = two.certify(ArrayRows(VALUES[:9, :2], names=("a", "b")))
    bounds = pa_csv.read_csv(tmp_path / "bounds.csv")
    for j, certificate in enumerate(expected):
        assert "output " + str(j) in " ".join(found[str(j)]["meaning"])
        np.testing.assert_allclose(bounds[f"mean_error_{j}"], certificate.mean_error, rtol=1e-6)
    assert "2 outputs without names" in certgp("report", "two.model", new, "--out", "r.html").error()


def test_several_targets_are_learned_by_name(certgp, train, tmp_path) -> None:
    quick = ["--method", "sparse", "--rank", "8", "--test-fraction", "0.2", "--max-iter", "5", "--noise", "constant"]
    outcome = certgp("fit", train, "--target", "b,price", *quick, "--out", "x.model", "--json")
    assert outcome.code == 0, outcome.err
    outputs = json.loads(outcome.out)["outputs"]
    assert list(outputs) == ["b", "price"]
    assert all(own["card"]["n_rows"] == 16 for own in outputs.values())
    assert certgp("predict", "x.model", train, "--out", "out.csv").code == 0
    table = pa_csv.read_csv(tmp_path / "out.csv")
    assert table.column_names == [f"{name}_{of}" for of in ("b", "price") for name in COLUMNS]
    told = certgp("certify", "x.model", train, "--train", train, "--tol", "0.5")
    assert "price\n=====\n" in told.out, told.err
    told = certgp("report", "x.model", train, "--out", "r.html")
    assert told.code == 0, told.err
    text = (tmp_path / "r.html").read_text()
    assert all(f"<h2>{name}</h2>" in text for name in ("b", "price"))
    assert "judged by  16 rows" in told.out
    assert "are b, price" in certgp("report", "x.model", train, "--outputs", "c", "--out", "r.html").error()
    assert "names 'b' twice" in certgp("fit", train, "--target", "b,b", "--out", "y.model").error()
    assert "takes one --target" in certgp("rank", train, "--target", "b,price").error()
