"""Every mistake ends with exit code 2 and one line that says what is wrong and what to do; nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_cases import rows, write

GOOD = ["--target", "price", "--out", "m"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND; see 'certgp --help'"),
        (["train"], "invalid choice: 'train'"),
        (["fit"], "the following arguments are required: DATA, --out; see 'certgp fit --help'"),
        (["fit", "train.csv", "--target", "price"], "required: --out"),
        (["fit", "train.csv", *GOOD, "--method", "magic"], "--method: invalid choice: 'magic' (choose from"),
        (["fit", "train.csv", *GOOD, "--kernel", "rbf"], "--kernel: invalid choice: 'rbf' (choose from"),
        (["fit", "train.csv", *GOOD, "--rank", "0"], "--rank: must be a whole number of at least 1"),
        (["fit", "train.csv", *GOOD, "--rank", "-3"], "--rank: must be a whole number of at least 1"),
        (["fit", "train.csv", *GOOD, "--rank", "2.5"], "found '2.5'"),
        (["fit", "train.csv", *GOOD, "--seed", "-1"], "--seed: must be a whole number of at least 0"),
        (["fit", "train.csv", *GOOD, "--test-fraction", "1"], "--test-fraction: must be at least 0 and less than 1"),
        (["fit", "train.csv", *GOOD, "--test-fraction", "half"], "--test-fraction: must be a number, found 'half'"),
        (["fit", "train.csv", *GOOD, "--test-fraction", "0.99"], "leave fewer than 2 to learn from"),
        (
            ["fit", "train.csv", *GOOD, "--method", "mercer", "--kernel", "matern32"],
            "--method mercer needs --kernel gaussian",
        ),
        (
            ["fit", "train.csv", *GOOD, "--method", "exact", "--rank", "9"],
            "--method exact has no rank; leave --rank out",
        ),
        (["fit", "train.csv", *GOOD, "--frobnicate"], "unrecognized arguments: --frobnicate; see 'certgp fit --help'"),
        (["fit", "train.csv", *GOOD, "--methd", "sparse"], "--methd sparse (did you mean --method?); see"),
        (["fit", "train.csv", *GOOD, "--drop", "price"], "'price' is both --target and --drop"),
        (
            ["fit", "train.csv", *GOOD, "--drop", "zz"],
            "there is no column 'zz' in train.csv; the columns are: 'a', 'b', 'price'",
        ),
        (
            ["fit", "train.csv", "--out", "m"],
            "name the column to predict with --target; the columns are: 'a', 'b', 'price'",
        ),
        (
            ["fit", "train.csv", "--target", "cost", "--out", "m"],
            "there is no column 'cost' in train.csv; the columns are: 'a', 'b', 'price'",
        ),
        (["fit", "train.csv", "--target", "price", "--out", "gone/m"], "the directory gone does not exist; create it"),
        (["fit", "train.csv", "--target", "price", "--out", "."], "is a directory; give the name of a file"),
        (
            ["fit", "train.csv", "--target", "price", "--out", "train.csv"],
            "--out train.csv has the ending of a data file",
        ),
        (["fit", "train.csv", "--target", "price", "--out", "m.npz"], "choose another for the model, such as m.model"),
        (
            ["fit", "train.csv", "--target", "price", "--out", "notes.txt"],
            "notes.txt exists and is not a model of certgp",
        ),
        (["fit", "train.csv", "--target", "price", "--out", "/proc/m"], "the directory /proc cannot be written to"),
        (["fit", "train.csv", *GOOD, "--drop", "a", "b"], "an option takes one value; give it again for another"),
        (["fit", "gone.csv", *GOOD], "gone.csv does not exist; check the path"),
        (["fit", "gone*.csv", *GOOD], "no file matches gone*.csv"),
        (
            ["fit", "notes.txt", *GOOD],
            "notes.txt has an unknown ending; readable files end in .csv, .csv.gz",
        ),
        (["fit", "nothing", *GOOD], "the folder nothing holds no readable file"),
    ],
)
def test_bad_commands(certgp, train, tmp_path, arguments, message):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "nothing").mkdir()
    before = sorted(tmp_path.iterdir())
    assert message in certgp(*arguments).error()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,price\n1,2,3\n4,5\n", "line 3 of bad.csv has 2 field(s) where the header has 3"),
        (
            "a,b,price\n1,,3\n4,5,6\n",
            "column 'b' of bad.csv has 1 missing or infinite value(s), first in row 1 (line 2); fill",
        ),
        ("a,b,price\n1,red,3\n4,5,6\n", "column 'b' of bad.csv is not numeric: row 1 (line 2) holds 'red'; encode"),
        ("a,a,price\n1,2,3\n4,5,6\n", "bad.csv has more than one column named 'a'; rename them"),
        ("a,b,price\n", "bad.csv has no rows"),
        ("a,b,price\n1,2,3\n", "1 row(s)"),
        ("price\n1\n2\n", "'price' is the only column"),
        ("", "bad.csv cannot be read as csv"),
    ],
)
def test_bad_tables(certgp, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    assert message in certgp("fit", "bad.csv", *GOOD).error()
    assert not Path("m").exists()


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
def test_truncated_data(certgp, tmp_path, ending):
    path = write(tmp_path / f"cut{ending}", rows())
    path.write_bytes(path.read_bytes()[:200])
    message = certgp("fit", path.name, *GOOD).error()
    assert f"cut{ending} cannot be read as {ending[1:]}" in message
    assert "check that the file is whole" in message


def test_a_column_is_missing_at_predict(certgp, tmp_path, model):
    (tmp_path / "new.csv").write_text("a,c\n1,2\n")
    assert (
        "there is no column 'b' in new.csv; the columns are: 'a', 'c'"
        in certgp("predict", model, "new.csv", "--out", "o.csv").error()
    )
    (tmp_path / "new.csv").write_text("c\n1\n")
    message = certgp("predict", model, "new.csv", "--out", "o.csv").error()
    assert "there are no columns 'a', 'b' in new.csv; the columns are: 'c'" in message
    assert not Path("o.csv").exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("o.txt", "o.txt has the ending .txt, so its format is unknown; use one of .csv, .parquet, .npz"),
        ("o", "o has no ending"),
        ("gone/o.csv", "the directory gone does not exist"),
        ("train.csv", "--out train.csv is one of the input files"),
    ],
)
def test_bad_prediction_files(certgp, train, model, out, message):
    assert message in certgp("predict", model, train, "--out", out).error()


@pytest.mark.parametrize("coverage", ["0", "1", "95", "nan", "most"])
def test_bad_coverage(certgp, train, model, coverage):
    message = certgp("predict", model, train, "--out", "o.csv", "--coverage", coverage).error()
    assert "--coverage: must" in message


def test_files_that_are_not_models(certgp, train, tmp_path, model):
    whole = model.read_bytes()
    flipped = bytearray(whole)
    flipped[-5] ^= 0xFF
    for name, content in [
        ("empty", b""),
        ("text", b"a,b\n1,2\n"),
        ("cut", whole[: len(whole) // 2]),
        ("flipped", bytes(flipped)),
    ]:
        (tmp_path / name).write_bytes(content)
        assert name in certgp("predict", name, train, "--out", "o.csv").error()
    assert "gone.model does not exist" in certgp("predict", "gone.model", train, "--out", "o.csv").error()
    assert not Path("o.csv").exists()
    Path("o.csv").write_text("old")
    assert "gone.model does not exist" in certgp("predict", "gone.model", train, "--out", "o.csv").error()


def test_demo_output_must_be_a_directory(certgp, train):
    assert "--out train.csv is a file; give the name of a directory" in certgp("demo", "--out", "train.csv").error()
    assert "the directory gone does not exist" in certgp("demo", "--out", "gone/demo").error()


def test_values_too_large_for_the_model_are_refused_in_one_line(certgp, tmp_path):
    values = rows(20)
    values[3, 0] = np.inf
    write(tmp_path / "bad.npz", values)
    assert "column 'x0' of bad.npz has 1 missing or infinite" in certgp("fit", "bad.npz", "--out", "m").error()
