"""certgp certify and certgp rank from end to end."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from cli_cases import rows, write

from certgp import MercerGP
from certgp.errors import NotCertifiableError


def test_certify_shows_what_was_saved(certgp, model):
    shown = certgp("certify", model)
    assert shown.code == 0
    assert "KL(exact || model)" in shown.out
    assert re.search("(of its|times their) own standard deviation", shown.out)
    assert "It does not say that the exact GP is right for your data" in shown.out
    assert " nats\n" in shown.out
    saved = json.loads(certgp("certify", model, "--json").out)
    assert saved["theorem"].startswith("K2")
    assert saved["kl"][0] <= saved["kl"][1]


def test_certify_bounds_every_prediction(certgp, model, tmp_path):
    new = write(tmp_path / "new.csv", rows(9, seed=1))
    own = json.loads(certgp("certify", model, new, "--json").out)
    assert len(own["mean_error"]) == len(own["variance_upper"]) == 9
    train = write(tmp_path / "train.csv", rows())
    sharper = json.loads(certgp("certify", model, new, "--train", train, "--tol", "0.001", "--json").out)
    assert max(sharper["mean_error"]) < max(own["mean_error"])
    assert sharper["theorem"].startswith("R1")
    assert sharper["evidence"]["mean_resolution"] <= 0.001


def test_a_bound_that_says_nothing_names_the_way_to_one_that_does(certgp, train, tmp_path):
    coarse = ["--method", "mercer", "--rank", "2", "--max-iter", "3", "--out", "coarse.model"]
    assert certgp("fit", train, "--target", "price", *coarse).code == 0
    new = write(tmp_path / "new.csv", rows(9, seed=1))
    shown = certgp("certify", "coarse.model", new)
    assert shown.code == 0
    assert "--train FILE" in shown.out
    sharper = certgp("certify", "coarse.model", new, "--train", train, "--tol", "0.01")
    assert "--train FILE" not in sharper.out


def test_a_plot_that_cannot_be_drawn_is_refused_before_the_fit(certgp, train):
    refused = certgp("rank", train, "--target", "price", "--plot", "ranks.foo")
    assert refused.code == 2
    assert "use one of .png, .pdf, .svg" in refused.err


def test_fourier_models_are_certified_when_fitted(certgp, train):
    out = ["--method", "fourier", "--rank", "20", "--out", "f.model"]
    fitted = json.loads(certgp("fit", train, "--target", "price", *out, "--json").out)
    again = json.loads(certgp("certify", "f.model", "--json").out)
    assert again["kl"] == fitted["certificate"]["kl"]
    assert fitted["not_certifiable"] is None
    shown = certgp("fit", train, "--target", "price", *out).out
    assert re.search(rf"to certify +certgp certify f.model NEW --train {train} --tol 0\.0\d+ --exact-solve\n", shown)
    assert certgp("certify", "f.model", train, "--train", train).code == 0
    assert again["theorem"].startswith("R1")


def test_a_model_that_cannot_be_certified_says_so_when_fitted(certgp, train, monkeypatch):
    def refuse(*_: object) -> None:
        raise NotCertifiableError("learned frequencies are no kernel")

    options = ["--target", "price", "--method", "mercer", "--rank", "5", "--max-iter", "2", "--out", "m"]
    with monkeypatch.context() as patched:
        patched.setattr(MercerGP, "certify", refuse)
        assert "impossible: learned frequencies are no kernel" in certgp("fit", train, *options).out
    assert "certgp certify m NEW --train" in certgp("fit", train, *options).out


def test_exact_solve_asks_first(certgp, model, tmp_path):
    train, new = write(tmp_path / "train.csv", rows()), write(tmp_path / "new.csv", rows(5, seed=1))
    solve = ["--train", train, "--tol", "1e-7", "--reference-rank", "20", "--exact-solve"]
    assert "add --yes" in certgp("certify", model, new, *solve).err
    shown = certgp("certify", model, new, *solve, "--yes")
    assert shown.code == 0
    assert "products with the 80 x 80 kernel matrix" in shown.err
    assert "C1 (conjugate gradients)" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tol", "0.1"], "--tol reads the training rows again; give them with --train FILE"),
        (["--delta", "0.1"], "--delta reads the training rows again"),
        (["--train", "train.csv", "--exact-solve"], "--exact-solve needs --tol and DATA"),
        (["--tol", "0"], "--tol: must be positive and finite, found '0'"),
        (
            ["--train", "train.csv", "--reference-rank", "20000"],
            "--reference-rank is 20000, which for 80 training row(s)",
        ),
        (["--max-error", "1"], "--max-error needs DATA"),
        (
            ["--train", "short.csv", "--tol", "1"],
            "--train have 79 row(s) but the model learned from 80; give the file(s)",
        ),
        (["--train", "other.csv", "--tol", "1"], "have no column 'price'"),
        (["--train", "changed.csv", "--tol", "1"], "not the ones the model was conditioned on"),
    ],
)
def test_bad_certify_commands(certgp, model, train, tmp_path, arguments, message):
    write(tmp_path / "other.csv", rows(), ("a", "b", "cost"))
    write(tmp_path / "changed.csv", rows(seed=5))
    write(tmp_path / "short.csv", rows()[:-1])
    assert message in certgp("certify", model, *arguments).error()


def test_the_split_of_the_fit_is_found_again(certgp, train, tmp_path):
    options = ["--target", "price", "--method", "mercer", "--rank", "10", "--test-fraction", ".25", "--seed", "3"]
    assert certgp("fit", train, *options, "--out", "part.model").code == 0
    shown = certgp("certify", "part.model", "--train", train)
    assert shown.code == 0, shown.err
    assert "note: the 20 row(s) that the fit held out for its test are left out" in shown.err
    other = write(tmp_path / "other.csv", rows()[:70])
    message = certgp("certify", "part.model", "--train", other).error()
    assert "have 70 row(s) but the model learned from 60 of 80, with --test-fraction 0.25" in message


def test_an_error_above_the_largest_allowed_has_its_own_exit_code(certgp, model, train, tmp_path):
    new = write(tmp_path / "new.csv", rows(9, seed=1))
    through = ["certify", model, new, "--train", train, "--tol", "1e-4", "--json"]
    shown = certgp(*through)
    largest, surely = max(json.loads(shown.out)["mean_error"]), max(json.loads(shown.out)["mean_error_lower"])
    assert certgp(*through, "--max-error", 1.01 * largest).code == 0
    refused = certgp(*through, "--max-error", 0.5 * surely)
    assert refused.code == 3
    assert json.loads(refused.out)["mean_error"] == json.loads(shown.out)["mean_error"]
    assert "of 9 prediction(s) are not proven to lie within it" in refused.err


def test_rank_reads_every_rank_off_one_fit(certgp, train, tmp_path):
    options = ["--target", "price", "--max-rank", "25", "--max-iter", "20"]
    curve = json.loads(certgp("rank", train, *options, "--json", "--plot", "curve.png").out)
    assert curve["ranks"] == list(range(1, 26))
    assert len(curve["nlpd"]) == len(curve["kl_bound"]) == 25
    assert (np.diff(curve["kl_bound"]) <= 0).all()
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert curve["plot"] == "curve.png"
    shown = certgp("rank", train, *options, "--tolerance", "0.5")
    assert "KL bound / row" in shown.out
    assert "would move a typical prediction by at most 100 % of its own standard deviation" in shown.out
    assert "predicts best" in shown.out


def test_rank_of_fourier_features_has_no_bound(certgp, train):
    shown = certgp("rank", train, "--target", "price", "--method", "fourier", "--max-rank", "12", "--max-iter", "5")
    assert "through a reference only" in shown.out


def test_fit_with_automatic_rank(certgp, train):
    fitted = json.loads(
        certgp(
            *("fit", train, "--target", "price", "--method", "mercer", "--out", "a.model", "--json"),
            *("--rank", "auto", "--tolerance", "0.01"),
        ).out
    )
    assert fitted["rank"] < 80
    assert fitted["certificate"]["kl"][1] <= 0.01 * 80
