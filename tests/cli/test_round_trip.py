"""fit, then predict: every format, every method, and the numbers that are printed about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_cases import COLUMNS, NAMES, rows, write

import certgp as library
from certgp.data import ArrayRows
from certgp.data.tables import read_table


@pytest.mark.parametrize(
    ("ending", "target"), [(".csv", "price"), (".parquet", "price"), (".npz", None), (".npz", "y"), (".npy", "x2")]
)
def test_every_format(certgp, tmp_path, ending, target):
    write(tmp_path / f"train{ending}", rows())
    write(tmp_path / f"new{ending}", rows(30, seed=1))
    chosen = ["--target", target] if target else []
    fitted = certgp("fit", f"train{ending}", *chosen, "--rank", 20, "--out", "m")
    assert fitted.code == 0, fitted.err
    assert fitted.err == ""
    predicted = certgp("predict", "m", f"new{ending}", "--out", "out.csv", "--json")
    assert predicted.code == 0, predicted.err
    table = read_table(["out.csv"])
    assert table.names == COLUMNS
    assert table.values.shape == (30, 4)
    assert json.loads(predicted.out)["scores"]["rmse"] < 0.35


def test_what_a_long_fit_will_cost_is_said_before(certgp, train, monkeypatch):
    monkeypatch.setattr("certgp.cli.fit._ANNOUNCED_ROWS", 50)
    fit = ("fit", train, "--target", "price", "--method", "sparse", "--rank", 8, "--max-iter", 1, "--test-fraction", 0)
    note = certgp(*fit, "--time-limit", 60, "--out", "m").err.splitlines()[0]
    assert note.startswith("note: 80 rows at rank 8: about ")
    assert note.endswith("would end in time")


@pytest.mark.parametrize("method", ["mercer", "fourier", "sparse", "exact", "local", "deep-mercer", "deep-fourier"])
def test_every_method_predicts_what_the_library_does(certgp, train, method):
    options = ["--include-training-data"] if method in ("exact", "local") else ["--rank", 20]
    options += ["--max-iter", 1] if method.startswith("deep") else []
    fitted = certgp("fit", train, "--target", "price", "--method", method, *options, "--out", "m", "--json")
    assert fitted.code == 0, fitted.err
    assert json.loads(fitted.out)["method"] == method
    assert certgp("predict", "m", train, "--out", "out.npz", "--coverage", 0.8).code == 0
    loaded, X = library.load("m"), rows()[:, :2]
    with np.load("out.npz") as out:
        mean, std = loaded.predict(ArrayRows(X, names=NAMES[:2]), return_std=True)
        np.testing.assert_array_equal(out["mean"], mean)
        np.testing.assert_array_equal(out["std"], std)
        np.testing.assert_allclose(out["upper"] - out["mean"], 1.2815515655446004 * out["std"], rtol=1e-8)
        np.testing.assert_allclose(out["mean"] - out["lower"], out["upper"] - out["mean"], rtol=1e-8)


def test_an_exact_model_says_that_it_holds_the_data(certgp, train):
    arguments = ["fit", train, "--target", "price", "--method", "exact", "--out", "m"]
    refused = certgp(*arguments)
    assert (refused.code, Path("m").exists()) == (2, False)
    assert "--include-training-data" in refused.err
    fitted = certgp(*arguments, "--include-training-data")
    assert fitted.err == "note: m holds the training data; this model cannot predict without it\n"


@pytest.mark.parametrize("given", [["part1.csv", "part2.csv"], ["part*.csv"]])
def test_several_files_are_one_table(certgp, tmp_path, given):
    values = rows()
    write(tmp_path / "all.csv", values)
    write(tmp_path / "part1.csv", values[:50])
    write(tmp_path / "part2.csv", values[50:])
    for name, data in [("one", ["all.csv"]), ("parts", given)]:
        assert certgp("fit", *data, "--target", "price", "--rank", 15, "--out", name).code == 0
        assert certgp("predict", name, *data, "--out", f"{name}.csv").code == 0
    np.testing.assert_array_equal(read_table(["one.csv"]).values, read_table(["parts.csv"]).values)


def test_columns_are_matched_by_name_and_extra_ones_ignored(certgp, tmp_path, model):
    values = rows(10, seed=2)
    write(tmp_path / "plain.csv", values)
    lines = [f"row{i},{v[1]!r},{v[0]!r}" for i, v in enumerate(values.tolist())]
    (tmp_path / "shuffled.csv").write_text("\n".join(["id,b,a", *lines]) + "\n")
    plain = certgp("predict", model, "plain.csv", "--out", "p.csv")
    shuffled = certgp("predict", model, "shuffled.csv", "--out", "s.csv")
    assert plain.code == shuffled.code == 0
    assert "RMSE" in plain.out
    assert "RMSE" not in shuffled.out
    np.testing.assert_allclose(read_table(["s.csv"]).values, read_table(["p.csv"]).values, rtol=1e-12)


def test_arrays_are_matched_by_position_and_never_by_the_names_that_stand_in(certgp, tmp_path):
    values = rows()
    write(tmp_path / "train.csv", values, ("x1", "x2", "price"))
    assert certgp("fit", "train.csv", "--target", "price", "--rank", 10, "--method", "mercer", "--out", "m").code == 0
    assert certgp("predict", "m", "train.csv", "--out", "right.csv").code == 0
    write(tmp_path / "inputs.npy", values[:, :2])
    write(tmp_path / "rows.npz", values)
    for arrays in ("inputs.npy", "rows.npz"):
        predicted = certgp("predict", "m", arrays, "--out", "out.csv")
        assert predicted.err == f"note: {arrays} has no column names; its columns are taken as 'x1', 'x2'\n"
        np.testing.assert_array_equal(read_table(["out.csv"]).values, read_table(["right.csv"]).values)
    assert "RMSE" in predicted.out
    write(tmp_path / "wide.npy", values)
    message = certgp("predict", "m", "wide.npy", "--out", "out.csv").error()
    assert "wide.npy has 3 column(s) without names but the model was fitted on 'x1', 'x2'; give exactly" in message


@pytest.mark.parametrize(("ending", "target"), [(".npz", "y"), (".npy", "x2")])
def test_models_of_arrays_take_the_columns_of_a_table_in_order_and_say_so(certgp, tmp_path, ending, target):
    write(tmp_path / f"train{ending}", rows())
    options = ["--target", target, "--rank", 10, "--method", "mercer", "--out", "m"]
    assert certgp("fit", f"train{ending}", *options).code == 0
    assert not hasattr(library.load("m"), "feature_names_in_")
    assert certgp("predict", "m", f"train{ending}", "--out", "right.csv").code == 0
    lines = [f"{a!r},{b!r}" for a, b, _ in rows().tolist()]
    (tmp_path / "new.csv").write_text("\n".join(["x2,x1", *lines]) + "\n")
    predicted = certgp("predict", "m", "new.csv", "--out", "out.csv")
    assert "note: the model was fitted on columns without names; 'x2', 'x1' are taken in this order" in predicted.err
    np.testing.assert_allclose(read_table(["out.csv"]).values, read_table(["right.csv"]).values, rtol=1e-12)
    write(tmp_path / "table.csv", rows(), ("a", "b", "x2"))
    assert "columns) without names" in certgp("predict", "m", "table.csv", "--out", "o.csv").error().replace(
        "(s)", "s)"
    )
    train = [f"train{ending}", "--train", f"train{ending}", "--tol", 0.1]
    assert certgp("certify", "m", *train).code == 0


def test_arrays_like_those_of_the_fit_keep_their_dropped_columns(certgp, tmp_path):
    values = np.column_stack([rows()[:, 2], np.arange(80.0), rows()[:, :2]])
    np.save(tmp_path / "train.npy", values)
    np.save(tmp_path / "inputs.npy", values[:, 2:])
    options = ["--target", "x0", "--drop", "x1", "--rank", 10, "--method", "mercer"]
    assert certgp("fit", "train.npy", *options, "--out", "m").code == 0
    assert "RMSE" in certgp("predict", "m", "train.npy", "--out", "whole.csv").out
    assert certgp("predict", "m", "inputs.npy", "--out", "part.csv").code == 0
    np.testing.assert_array_equal(read_table(["whole.csv"]).values, read_table(["part.csv"]).values)
    np.savez(tmp_path / "train.npz", X=values[:, 1:], y=values[:, 0])
    np.savez(tmp_path / "new.npz", X=values[:, 1:])
    assert certgp("fit", "train.npz", "--drop", "x0", *options[4:], "--out", "z").code == 0
    predicted = certgp("predict", "z", "new.npz", "--out", "new.csv")
    assert (predicted.code, predicted.err) == (0, "")
    np.testing.assert_array_equal(read_table(["new.csv"]).values, read_table(["part.csv"]).values)
    np.save(tmp_path / "narrow.npy", values[:, :3])
    assert "narrow.npy has other columns" in certgp("predict", "m", "train.npy", "narrow.npy", "--out", "o.csv").error()


def test_an_empty_target_column_is_predicted_and_not_scored(certgp, tmp_path, model):
    (tmp_path / "new.csv").write_text("a,b,price\n0.1,0.2,\n0.3,0.4,1.0\n")
    predicted = certgp("predict", model, "new.csv", "--out", "out.csv", "--json")
    assert predicted.code == 0
    assert json.loads(predicted.out)["scores"] is None
    assert predicted.err.startswith("note: predictions are not scored: column 'price'")


def test_scores_are_those_of_the_written_predictions(certgp, tmp_path, model):
    values = rows(60, seed=3)
    write(tmp_path / "new.csv", values)
    scores = json.loads(certgp("predict", model, "new.csv", "--out", "out.csv", "--coverage", 0.7, "--json").out)[
        "scores"
    ]
    mean, std, lower, upper = read_table(["out.csv"]).values.T
    y = values[:, 2]
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y) ** 2)), rel=1e-8)
    assert scores["nlpd"] == pytest.approx(np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * ((y - mean) / std) ** 2))
    assert scores["coverage"] == pytest.approx(np.mean((lower <= y) & (y <= upper)))
    assert scores["nominal_coverage"] == 0.7


def test_predictions_can_be_printed(certgp, train, tmp_path, model):
    assert certgp("predict", model, train, "--out", "out.csv").code == 0
    printed = certgp("predict", model, train, "--out", "-")
    assert printed.out == (tmp_path / "out.csv").read_text()
    assert "leave one of them out" in certgp("predict", model, train, "--out", "-", "--json").error()


def test_held_out_rows_are_scored_and_not_learned(certgp, train):
    fitted = json.loads(
        certgp("fit", train, "--target", "price", "--test-fraction", 0.25, "--rank", 15, "--out", "m", "--json").out
    )
    assert (fitted["n_rows"], fitted["test"]["n_rows"]) == (60, 20)
    assert fitted["test"]["rmse"] < 0.5
    text = certgp("fit", train, "--target", "price", "--test-fraction", 0.25, "--rank", 15, "--out", "m").out
    assert "20 held-out rows" in text
    assert "gradient boosting" in text
    assert "60 rows" in text


def test_dropped_columns_are_not_inputs(certgp, tmp_path):
    lines = [f"r{i},{a!r},{b!r},{y!r}" for i, (a, b, y) in enumerate(rows(30).tolist())]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,price", *lines]) + "\n")
    fitted = certgp(
        "fit", "t.csv", "--target", "price", "--drop", "id", "--drop", "b", "--rank", 10, "--out", "m", "--json"
    )
    assert fitted.code == 0, fitted.err
    assert json.loads(fitted.out)["columns"] == ["a"]
    together = certgp("fit", "t.csv", "--target", "price", "--drop", "id,b", "--rank", 10, "--out", "m", "--json")
    assert json.loads(together.out)["columns"] == ["a"]


def test_iterations_can_be_limited(certgp, train):
    arguments = [
        "--target",
        "price",
        "--method",
        "exact",
        "--include-training-data",
        "--max-iter",
        2,
        "--out",
        "m",
        "--json",
    ]
    outcome = certgp("fit", train, *arguments)
    assert json.loads(outcome.out)["n_iter"] == 2
    assert "warning: the fit stopped before it converged" in outcome.err


def test_the_same_seed_gives_the_same_model(certgp, train):
    outputs = []
    for name in ("m1", "m2"):
        arguments = ["--target", "price", "--method", "fourier", "--rank", 16, "--seed", 5, "--json"]
        fields = json.loads(certgp("fit", train, *arguments, "--out", name).out)
        outputs.append((fields["log_marginal_likelihood"], fields["noise_variance"]))
    assert outputs[0] == outputs[1]


def test_models_fitted_without_names_take_columns_in_order(certgp, tmp_path):
    values = rows()
    library.MercerGP(15, random_state=0).fit(values[:, :2], values[:, 2]).save(tmp_path / "m")
    write(tmp_path / "new.npz", values)
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n")
    assert certgp("predict", "m", "new.npz", "--out", "out.csv").code == 0
    message = certgp("predict", "m", "wide.csv", "--out", "out.csv").error()
    assert "fitted on 2 column(s) without names but the data have 3" in message


def test_json_of_fit_has_all_fields(certgp, train):
    fields = json.loads(certgp("fit", train, "--target", "price", "--rank", 12, "--out", "m", "--json").out)
    assert fields["command"] == "fit"
    assert fields["columns"] == list(NAMES[:2])
    assert fields["target"] == "price"
    assert fields["rank"] == 12
    assert fields["test"] is None
    assert isinstance(fields["converged"], bool)
    assert len(fields["length_scale"]) == 2
    for name in ("noise_variance", "signal_variance", "seconds"):
        assert fields[name] > 0.0


def test_weights_are_a_column(certgp, tmp_path):
    values = rows()
    weights = np.where(np.arange(len(values)) % 5 == 0, 0.0, np.exp(np.sin(np.arange(len(values)))))
    write(tmp_path / "train.csv", np.column_stack([values, weights]), (*NAMES, "w"))
    write(tmp_path / "new.csv", rows(10, seed=1))
    options = ["--target", "price", "--weights", "w", "--method", "sparse", "--rank", 15, "--max-iter", 200]
    fitted = certgp("fit", "train.csv", *options, "--out", "m", "--json")
    assert fitted.code == 0, fitted.err
    assert json.loads(fitted.out)["n_rows"] == 64
    by_hand = library.SparseGP(15, max_iter=200, random_state=0)
    by_hand.fit(ArrayRows(values[:, :2], values[:, 2], NAMES[:2]), sample_weight=weights)
    assert json.loads(fitted.out)["noise_variance"] == by_hand.noise_variance_
    assert certgp("predict", "m", "new.csv", "--out", "out.csv").code == 0
    assert certgp("certify", "m", "new.csv", "--train", "train.csv", "--tol", 0.1).code == 0
    assert (
        "'w' is both --weights and --drop" in certgp("fit", "train.csv", *options, "--drop", "w", "--out", "m").error()
    )
    assert "no column 'v'" in certgp("fit", "train.csv", *options[:3], "v", "--out", "m").error()
    split = certgp("fit", "train.csv", *options, "--test-fraction", 0.2, "--out", "m")
    assert split.code == 0, split.err
    assert certgp("certify", "m", "--train", "train.csv").code == 0
