"""Ctrl-C and time limits: what is saved, what is said, how to go on. A signal from a callback is a key pressed."""

from __future__ import annotations

import json
import signal

import pytest
from cli_cases import rows, write
from pandas import read_csv as load_frame

from certgp import load
from certgp.cli import fit
from certgp.cli.output import Console

FIT = ("fit", "t.npz", "--method", "sparse", "--rank", 8, "--out", "m")


@pytest.fixture
def interrupt(monkeypatch, tmp_path):
    """Press Ctrl-C at these iterations, as often as they are named."""
    write(tmp_path / "t.npz", rows())

    def at(*iterations: int) -> None:
        def pressed(self: Console, record: object) -> None:
            for _ in range(iterations.count(record.iteration)):
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Console, "iteration", pressed)

    return at


def test_the_first_saves_the_best_model_so_far_and_says_how_to_go_on(certgp, interrupt, tmp_path):
    interrupt(3)
    outcome = certgp(*FIT)
    assert outcome.code == 130
    assert outcome.err == ""
    assert "the fit was interrupted" in outcome.out, outcome.out
    assert "m, the best model so far" in outcome.out
    assert "certgp fit t.npz --method sparse --rank 8 --out m --checkpoint m.checkpoint" in outcome.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "t.npz"]
    assert not load("m").converged_
    assert load("m").predict([[0.0, 0.0]]).shape == (1,)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # as it was


def test_of_several_outputs_too(certgp, interrupt, tmp_path):
    interrupt(1)
    write(tmp_path / "t.csv", rows())
    outcome = certgp("fit", "t.csv", "--target", "b,price", "--method", "sparse", "--rank", 4, "--out", "m")
    assert outcome.code == 130
    assert "the fit was interrupted" in outcome.out, outcome.out
    assert "\n  saved     m, the best model so far\n  to go on  certgp fit t.csv" in outcome.out
    assert load("m").predict(load_frame(tmp_path / "t.csv")).shape == (80, 2)


def test_the_second_ends_at_once_and_leaves_nothing(certgp, interrupt, tmp_path, capsys):
    interrupt(3, 3)
    with pytest.raises(SystemExit) as stop:
        certgp(*FIT)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "interrupted; nothing was saved\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]


def test_what_is_done_is_saved_even_where_the_proof_is_not_awaited(certgp, interrupt, tmp_path, monkeypatch):
    def proof(*_: object) -> None:
        raise KeyboardInterrupt

    interrupt()
    monkeypatch.setattr(fit, "prove", proof)
    outcome = certgp(*FIT)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "interrupted before all was proven and scored; the model itself is done: m\n"
    assert load("m").n_rows_ == 80


def test_a_proof_that_fails_does_not_lose_the_fit(certgp, interrupt, monkeypatch):
    def proof(*_: object) -> None:
        raise MemoryError

    interrupt()
    monkeypatch.setattr(fit, "prove", proof)
    assert certgp(*FIT).code == 2
    assert load("m").n_rows_ == 80


def test_with_a_checkpoint_the_same_command_goes_on(certgp, interrupt, tmp_path):
    interrupt(6)
    command = (*FIT, "--checkpoint", "c", "--json")
    outcome = certgp(*command)
    assert outcome.code == 130
    first = json.loads(outcome.out)
    assert first["interrupted"]
    assert (tmp_path / "c").exists()
    interrupt()
    second = json.loads(certgp(*command).out)
    assert not second["interrupted"]
    assert second["n_iter"] > first["n_iter"]
    whole = json.loads(certgp(*FIT, "--json").out)
    assert second["log_marginal_likelihood"] == whole["log_marginal_likelihood"]  # bit for bit
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("method", ["auto", "mercer", "sparse", "exact", "local", "deep-fourier"])
def test_a_time_limit_is_for_every_method(certgp, interrupt, method):
    interrupt()
    more = ("--include-training-data",) if method in ("exact", "local") else ()
    outcome = certgp(*FIT[:2], "--method", method, "--time-limit", 1e-3, "--out", "m", "--json", *more)
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["stop_reason"].startswith("--time-limit is used up")
    assert not found["converged"]
