"""certgp fit: the options of AutoGP's race, and what it says of the choice."""

from __future__ import annotations

import json

from certgp import load


def test_the_choice_is_told_and_models_that_hold_rows_are_left_out_unless_allowed(certgp, train):
    options = ["--max-iter", "3", "--rank", "5", "--effort", "low", "--time-limit", "60", "--prefer", "proof"]
    outcome = certgp("fit", train, "--target", "price", *options, "--out", "a.model")
    assert outcome.code == 0
    assert "chosen" in outcome.out
    assert "--include-training-data allows it" in outcome.out
    allowed = certgp(
        "fit", train, "--target", "price", *options, "--include-training-data", "--out", "b.model", "--json"
    )
    assert allowed.code == 0
    said = json.loads(allowed.out)
    assert {"exact", "local"} <= {trial["name"] for trial in said["trials"]}
    assert said["choice"].startswith(said["trials"][0]["name"])


def test_options_of_the_race_need_the_race(certgp, train):
    outcome = certgp("fit", train, "--target", "price", "--method", "sparse", "--effort", "low", "--out", "a.model")
    assert outcome.code == 2
    assert "--effort is for --method auto, found --method sparse" in outcome.err


def test_a_mixture_is_asked_for_and_a_fit_that_is_done_leaves_no_checkpoint(certgp, train, tmp_path):
    options = ["--max-iter", "3", "--rank", "5", "--combine", "--checkpoint", str(tmp_path / "fit.checkpoint")]
    outcome = certgp("fit", train, "--target", "price", *options, "--out", "a.model", "--json")
    assert outcome.code == 0
    assert load("a.model").combine  # whether a mixture pays is for the race to say
    assert not list(tmp_path.glob("fit.checkpoint*"))


def test_a_checkpoint_needs_a_method_that_keeps_one(certgp, train):
    options = ["--method", "exact", "--include-training-data", "--checkpoint", "c", "--out", "a.model"]
    outcome = certgp("fit", train, "--target", "price", *options)
    assert outcome.code == 2
    assert "--checkpoint is not for --method exact" in outcome.err


def test_inputs_are_warped_where_that_is_asked_for(certgp, train):
    options = ["--method", "sparse", "--max-iter", "3", "--rank", "5", "--out", "a.model", "--json"]
    said = [certgp("fit", train, "--target", "price", *options, "--warp", warp) for warp in ("no", "yes")]
    assert [each.code for each in said] == [0, 0]
    without, powers = (json.loads(each.out)["warp"] for each in said)
    assert without is None
    assert powers == load("a.model").warp_.tolist()
