"""From a table to a card, a page and bounds of every row."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from cli_cases import rows, write

import certgp as package

FIT = ("--target", "price", "--method", "sparse", "--rank", "12", "--max-iter", "15", "--noise", "constant")


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "table.csv", rows(200))


def test_every_fit_ends_with_a_card_and_the_report_judges_by_the_same_rows(certgp, table, tmp_path):
    fitted = certgp("fit", table, *FIT, "--out", "m")
    assert fitted.code == 0
    for words in ("20 held-out rows", "constant", "linear", "gradient boosting", "Its intervals", "certgp report m"):
        assert words in fitted.out
    assert "nats per training row" not in fitted.out
    again = json.loads(certgp("fit", table, *FIT, "--out", "m", "--json").out)
    card = again["card"]
    assert np.mean(card["coverage_95_by_fifth"]) == pytest.approx(card["scores"]["this model"]["coverage_95"])
    assert card["n_rows"] == again["test"]["n_rows"] == 20
    assert again["n_rows"] == 180
    assert card["scores"]["this model"]["rmse"] == pytest.approx(again["test"]["rmse"])
    reported = json.loads(certgp("report", "m", table, "--out", "page.html", "--json").out)
    assert reported["n_rows"] == 20
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert card["verdict"] in text
    assert f"{card['scores']['gradient boosting']['nlpd']:.3f}" in text


def test_no_rows_are_held_out_where_there_are_few_or_none_are_wanted(certgp, table, train):
    assert "No rows were held out" in certgp("fit", train, *FIT, "--out", "few").out
    all_rows = json.loads(certgp("fit", table, *FIT, "--test-fraction", 0, "--out", "m", "--json").out)
    assert (all_rows["n_rows"], all_rows["card"]) == (200, None)
    assert certgp("report", "m", table, "--out", "page.html").code == 0


def test_a_report_needs_the_target_and_an_html_file(certgp, model, tmp_path):
    write(tmp_path / "new.csv", rows(10)[:, :2], ("a", "b"))
    assert "has no column 'price', the target" in certgp("report", model, "new.csv", "--out", "r.html").error()
    assert ".html" in certgp("report", model, "new.csv", "--out", "r.pdf").error()


def test_bounds_of_every_row_are_written(certgp, model, tmp_path):
    write(tmp_path / "new.csv", rows(12, seed=3))
    done = certgp("certify", model, "new.csv", "--out", "bounds.csv")
    assert done.code == 0
    assert "bounds of every row: bounds.csv" in done.out
    found = pa_csv.read_csv(tmp_path / "bounds.csv").to_pydict()
    assert list(found) == ["mean", "mean_error", "mean_error_lower", "std_lower", "std_upper"]
    X = rows(12, seed=3)[:, :2]
    certificate = package.load(model).certify(certgp_rows(model, X))
    np.testing.assert_allclose(found["mean_error"], certificate.mean_error)
    np.testing.assert_allclose(np.square(found["std_upper"]), certificate.variance_upper, atol=1e-12)
    assert "--out needs DATA" in certgp("certify", model, "--out", "b.csv").error()


def certgp_rows(model, X):
    from certgp.cli.columns import rows_for

    return rows_for(package.load(model), X)


def test_rows_beyond_the_range_are_all_counted(certgp, model, tmp_path):
    values = rows(60, seed=4)
    values[:, 0] = rows()[:, 0].max() * 1.05  # beyond the range, by less than a tenth of it
    write(tmp_path / "new.csv", values)
    warned = certgp("predict", model, "new.csv", "--out", "out.csv").err
    assert warned.startswith("warning: 60 of 60 row(s) lie outside the range of the training inputs, 0 of them by")
