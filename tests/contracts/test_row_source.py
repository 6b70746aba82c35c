"""A row source outside the package, in a few lines, goes everywhere that arrays go."""

from __future__ import annotations

import runpy
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import certgp

FILE = Path(__file__).parent / "extensions" / "row_source.py"
NAMES = ["age", "height", "weight"]
MOST_LINES = 35


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3)) + 5.0
    return X, np.sin(2.0 * X[:, 0]) + X[:, 2] + 0.1 * rng.standard_normal(150)


@pytest.fixture(scope="module")
def rows(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "people.db"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE people ({', '.join(NAMES)}, income)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", np.column_stack(table).tolist())
    return runpy.run_path(str(FILE))["DatabaseRows"](path, "people")


def test_it_takes_few_lines():
    assert len(FILE.read_text().splitlines()) <= MOST_LINES


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        certgp.MercerGP(12, max_iter=8, random_state=0),
        certgp.MercerGP(12, max_iter=8, calibrate=True, random_state=0),
        certgp.FourierGP(12, max_iter=8, random_state=0),
        certgp.SparseGP(12, max_iter=8, random_state=0),
        certgp.ExactGP(max_iter=8),
        certgp.AutoGP(12, max_iter=8, random_state=0),
        certgp.DeepFourierGP(8, hidden=(6,), embedding=1, max_iter=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_treats_it_like_an_array(model, table, rows, tmp_path):
    X, y = table
    model.fit(X, y)
    expected = model.predict(X, return_std=True)
    evidence, loss, certificate = model.log_marginal_likelihood_, model.nlpd(X, y), model.certify(X).mean_error
    model.fit(rows)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.log_marginal_likelihood_ == evidence
    np.testing.assert_array_equal(model.predict(rows, return_std=True), expected)
    assert model.nlpd(rows) == loss
    assert model.score(rows) > 0.5
    np.testing.assert_array_equal(model.certify(rows).mean_error, certificate)
    assert model.certify(rows=rows).kl.upper >= 0.0
    options = {"include_training_data": True} if model.needs_training_data else {}
    model.save(tmp_path / "m", **options)
    np.testing.assert_array_equal(certgp.load(tmp_path / "m").predict(rows, return_std=True), expected)


def test_further_rows_and_curves_over_the_rank(table, rows):
    X, y = table
    with_array = certgp.MercerGP(12, optimize=False).fit(X[:100], y[:100]).partial_fit(X, y)
    with_source = certgp.MercerGP(12, optimize=False).fit(X[:100], y[:100])
    with pytest.warns(UserWarning, match="X has feature names, but MercerGP was fitted without"):
        with_source.partial_fit(rows)
    assert with_source.log_marginal_likelihood_ == with_array.log_marginal_likelihood_
    named = certgp.MercerGP(12, optimize=False).fit(rows)
    np.testing.assert_array_equal(
        named.rank_curve(rows).nlpd, certgp.MercerGP(12, optimize=False).fit(X, y).rank_curve(X, y).nlpd
    )
