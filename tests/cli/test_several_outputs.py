"""A model of several outputs on the command line: predictions for each, and clear words where one is needed."""

from __future__ import annotations

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


def test_certify_and_target_say_what_to_do(certgp, two, train) -> None:
    assert "two.model has 2 outputs" in certgp("certify", "two.model").error()
    assert "--target takes one column" in certgp("fit", train, "--target", "b,price", "--out", "x.model").error()
