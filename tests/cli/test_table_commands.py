"""A messy table on the command line: fitted, predicted, certified and reported with the same columns."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_cases import rows, write

import certgp as library
from certgp.cli.main import main
from table_cases import as_text as messy_text
from table_cases import messy

FRAME = messy()
TEXT = ["--sep", ";", "--decimal", ","]
QUICK = ["--method", "sparse", "--rank", "20", "--max-iter", "6", "--noise", "constant"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, and a model that learned the logarithm of its price."""
    folder = tmp_path_factory.mktemp("sales")
    (folder / "sales.csv").write_text(messy_text(FRAME))
    command = ["fit", folder / "sales.csv", "--target", "price", *TEXT, "--missing", "impute", "--log-target", *QUICK]
    assert main([*map(str, command), "--out", str(folder / "m")]) == 0
    return folder


def test_lines_of_other_lengths_are_among_the_problems(certgp, folder) -> None:
    (folder / "short.csv").write_text("colour,size,price\nred,1.5,3\nblue,2.5\ngreen,x1,5\nred,1,7,8\nred,2,9\n")
    outcome = certgp("fit", folder / "short.csv", "--target", "price", "--out", folder / "short.model")
    first, line, lines, column = outcome.err.splitlines()
    assert first.startswith("error: the table has 3 problems")
    assert line.startswith(f"- line 3 of {folder / 'short.csv'} has 2 field(s) where the header has 3")
    assert line.endswith("(--on-bad-rows skip)")
    assert lines == "- 2 lines in all have more or fewer fields than the header"
    assert "row 3 (line 4) holds 'x1'" in column
    assert not (folder / "short.model").exists()


def test_problems_come_in_one_message_and_nothing_is_written(certgp, folder) -> None:
    outcome = certgp("fit", folder / "sales.csv", "--target", "price", "--sep", ";", *QUICK, "--out", "m")
    assert outcome.code == 2
    first, *problems = outcome.err.splitlines()
    assert first.startswith("error: the table has 3 problems")
    assert len(problems) == 3
    assert all(any(name in each for each in problems) for name in ("'colour'", "'size'", "'price'"))
    assert sum("--decimal ," in each for each in problems) == 2
    assert "--sep ';'" in certgp("fit", folder / "sales.csv", "--target", "price", "--out", "m").error()


def test_predictions_repeat_what_was_done(certgp, folder, tmp_path) -> None:
    new = FRAME[200:].drop(columns=["order_id", "currency"])[["price", "size", "shop", "colour", "sold", "member"]]
    (tmp_path / "new.csv").write_text(messy_text(new))
    outcome = certgp("predict", folder / "m", "new.csv", "--out", "out.csv", "--json")
    assert outcome.code == 0, outcome.err
    found, gp = pd.read_csv("out.csv"), library.load(folder / "m")
    mean, std = gp.predict(new.assign(sold=new["sold"].dt.strftime("%d.%m.%Y %H:%M")), return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9)
    np.testing.assert_allclose(found["std"], std, rtol=1e-9)
    assert list(found) == ["mean", "std", "lower", "upper", "median"]
    assert (found["lower"] < found["median"]).all()
    texts = new.assign(sold=new["sold"].dt.strftime("%d.%m.%Y %H:%M"))
    np.testing.assert_allclose(json.loads(outcome.out)["scores"]["nlpd"], gp.nlpd(texts), rtol=1e-9)
    new[:2].assign(size=["wide", 3.0]).to_csv("bad.csv", sep=";", index=False)
    assert (
        "'size' of bad.csv: row 1 (line 2) holds 'wide'"
        in certgp("predict", folder / "m", "bad.csv", "--out", "o.csv").err
    )
    strange = new.assign(colour="mauve", member=None)
    (tmp_path / "new.csv").write_text(messy_text(strange))
    told = certgp("predict", folder / "m", "new.csv", "--out", "o.csv").err
    assert "column 'colour': 40 value(s) are levels that no training row has" in told
    assert "column 'member': 40 gap(s) were filled in as in the fit (its training rows had none" in told


def test_the_rows_of_the_fit_are_found_again(certgp, folder) -> None:
    sales = folder / "sales.csv"
    certified = certgp("certify", folder / "m", sales, "--train", sales, "--tol", "5", "--json")
    assert certified.code == 0, certified.err
    assert "the 24 row(s) that the fit held out for its test are left out" in certified.err
    assert json.loads(certified.out)["median_factor"] > 1.0
    outcome = certgp("report", folder / "m", sales, "--out", "r.html", "--json")
    assert json.loads(outcome.out)["n_rows"] == 24
    with open("r.html", encoding="utf-8") as page:
        text = page.read()
    assert "What was done to the columns" in text
    assert "log(price)" in text
    assert "20 levels: the mean target of each" in text
    half = messy_text(FRAME[:100])
    (folder / "half.csv").write_text(half)
    assert "not the table of the fit" in certgp("certify", folder / "m", "--train", folder / "half.csv").error()


@pytest.mark.parametrize(
    ("options", "words"), [(["--group", "shop"], "whole groups"), (["--time-split", "sold"], "latest")]
)
def test_hold_outs_are_honest(certgp, folder, options, words) -> None:
    fit = ["fit", folder / "sales.csv", "--target", "price", *TEXT, "--missing", "impute", *QUICK, *options]
    outcome = certgp(*fit, "--out", "m")
    assert outcome.code == 0, outcome.err
    assert f"Held out are {'the ' if words == 'latest' else ''}{words}" in outcome.out
    assert ("shop" in library.load("m").columns_) == (words == "latest")
    certified = certgp("certify", "m", "--train", folder / "sales.csv")
    assert "row(s) that the fit held out" in certified.err, certified.err  # the split is found again
    both = certgp(*fit, "--group", "shop", "--time-split", "sold", "--out", "m")
    assert "give one of them" in both.error()


def test_tables_of_numbers_are_as_before(certgp, tmp_path) -> None:
    table = write(tmp_path / "train.csv", rows())
    assert certgp("fit", table, "--target", "price", *QUICK, "--out", "m").code == 0
    plain = library.load("m")
    assert isinstance(plain, library.SparseGP)
    assert plain.encoding_ is None
    with pytest.warns(library.ConvergenceWarning):
        direct = library.SparseGP(20, max_iter=6, noise="constant", random_state=0).fit(
            library.read(table, target="price")
        )
    X = library.read(table, inputs=["a", "b"])
    np.testing.assert_array_equal(plain.predict(X), direct.predict(X))
    encoded = certgp("fit", table, "--target", "price", "--missing", "impute", *QUICK, "--out", "n")
    assert encoded.code == 0, encoded.err
    np.testing.assert_array_equal(library.load("n").model_.predict(X), plain.predict(X))


def test_identifiers_among_numbers_are_named_and_left_out(certgp, tmp_path) -> None:
    given = rows(40)
    numbered = np.column_stack([np.arange(40) + 7, given])
    table = write(tmp_path / "t.csv", numbered, ("order_id", "a", "b", "price"))
    fit = ["fit", table, "--target", "price", "--method", "exact", "--include-training-data", "--max-iter", "1"]
    outcome = certgp(*fit, "--out", "m", "--json")
    found = json.loads(outcome.out)
    assert found["left_out"] == {"order_id": "an identifier: no two of 40 rows share a number"}, outcome.err
    assert found["columns"] == ["a", "b"]
    assert library.load("m").table_.left_out == tuple(found["left_out"].items())
    kept = json.loads(certgp(*fit, "--keep", "order_id", "--out", "k", "--json").out)
    assert (kept["left_out"], kept["columns"]) == ({}, ["order_id", "a", "b"])
    ranks = certgp("rank", table, "--target", "price", "--method", "sparse", "--max-rank", 2, "--max-iter", 1)
    assert "note: column 'order_id' is left out: an identifier" in ranks.err
    told = certgp("report", "m", table, "--out", "r.html")
    assert told.code == 0, told.err
    assert "left out: an identifier" in (tmp_path / "r.html").read_text()


def test_mistakes_are_told_before_torch_is_imported(folder, tmp_path) -> None:
    (tmp_path / "short.csv").write_text("a,b\n1,2\n")
    program = f"""
import sys
from certgp.cli.main import main
model, sales, short = {str(folder / "m")!r}, {str(folder / "sales.csv")!r}, {str(tmp_path / "short.csv")!r}
text = ["--sep", ";", "--decimal", ","]
for command in (
    ["fit", "gone.csv", "--target", "y", "--out", "x.model"],
    ["fit", sales, "--target", "price", "--out", "x.model"],
    ["fit", sales, "--target", "cost", *text, "--out", "x.model"],
    ["fit", sales, "--target", "price", *text, "--out", "x.model"],
    ["fit", sales, "--target", "price", *text, "--missing", "impute", "--out", model + "/x"],
    ["predict", model, "gone.csv", "--out", "x.csv"],
    ["predict", "gone.model", sales, "--out", "x.csv"],
    ["predict", model, short, "--sep", ",", "--out", "x.csv"],
    ["certify", model, "gone.csv"],
    ["report", model, short, "--sep", ",", "--out", "x.html"],
):
    assert main(command) == 2, command
    assert "torch" not in sys.modules and "sklearn" not in sys.modules, command
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("error: ") == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["short.csv"]
