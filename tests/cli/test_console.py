"""What goes to which stream, and when the moving line shows."""

from __future__ import annotations

import json
import re
import warnings
from contextlib import redirect_stderr

import pytest
from cli_cases import Terminal, rows, shown, write

from certgp import __version__
from certgp.cli import fit
from certgp.cli.main import main
from certgp.cli.output import Console, aligned, in_width, one_line, table
from certgp.errors import ConvergenceWarning, RankWarning
from certgp.training import Iteration


def test_success_is_quiet_on_stderr_in_a_pipe(certgp, train):
    outcome = certgp("fit", train, "--target", "price", "--rank", 10, "--out", "m")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.rstrip().endswith("m")


def test_json_is_one_object_on_one_line(certgp, train, model):
    outcome = certgp("predict", model, train, "--out", "o.csv", "--json")
    assert outcome.out.count("\n") == 1
    assert json.loads(outcome.out)["out"] == "o.csv"


def test_json_has_no_nan(capsys):
    Console(as_json=True).result({"a": float("nan"), "b": [float("inf"), 1.0], "c": {"d": -float("inf")}}, "")
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.0], "c": {"d": None}}


def test_progress_moves_on_one_line_and_leaves_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    console, terminal = Console(), Terminal()
    with redirect_stderr(terminal):  # inside the test: pytest sets its own streams after fixtures
        console.expect(60.0)
        console.iteration(Iteration(1, -0.123456, 1.0, 4.21, 100, 0.5, 1_000, "start greedy", 70))
        console.status("short")
        console.notice("note: hello")
        assert shown(terminal) == ["note: hello", ""]
        console.status("more")
        console.result({}, "done")
    assert shown(terminal) == ["note: hello", ""]
    seen = terminal.getvalue()
    assert "fitting: start greedy, iteration 1/70" in seen
    assert "at most 56 s left, objective/row -0.1235, held-out 0.5000" in seen
    assert "short" in seen
    assert capsys.readouterr().out == "done\n"


def test_a_narrow_terminal_shows_all_figures_below(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    with redirect_stderr(terminal):
        console = Console()
        console.expect(60.0)
        console.iteration(Iteration(1, -0.123456, 1.0, 4.21, 100, 0.5, 1_000, "start 4 directions by slices of y", 70))
        console.status("")
    seen = terminal.getvalue()
    assert "fitting: start 4 directions by slices of y, iteration 1/70" in seen
    assert "at most 56 s left, objective/row -0.1235, held-out 0.5000, rank 100" in seen
    assert shown(terminal) == [""]


def test_the_moving_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    with redirect_stderr(terminal):
        console = Console()
        console.status("predicting", "x" * 100, 0.5)
        console.status("")
    assert "xxx" in terminal.getvalue()
    assert "x" * 60 not in terminal.getvalue()


def test_a_fit_on_a_terminal_shows_iterations(tmp_path, capsys):
    write(tmp_path / "t.npz", rows())
    terminal = Terminal()
    with redirect_stderr(terminal):
        assert main(["fit", str(tmp_path / "t.npz"), "--rank", "10", "--out", str(tmp_path / "m")]) == 0
    assert re.search(r"iteration \d+/\d+", terminal.getvalue())
    assert shown(terminal) == [""]
    assert "rank 10" in capsys.readouterr().out


def test_warnings_are_single_lines_said_once(capsys):
    with Console().warnings_as_lines():
        for _ in range(2):
            warnings.warn("rank is\ntoo large", RankWarning, stacklevel=1)
        warnings.warn("stopped", ConvergenceWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: rank is too large\nwarning: stopped\n"


def test_warnings_of_others_keep_their_origin(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with Console().warnings_as_lines():
            warnings.warn("old call", DeprecationWarning, stacklevel=1)
    assert re.search(r"test_console\.py:\d+: DeprecationWarning: old call", capsys.readouterr().err)


def test_a_rank_above_the_rows_warns_in_one_line(certgp, tmp_path):
    write(tmp_path / "t.npz", rows(12))
    outcome = certgp("fit", "t.npz", "--rank", 50, "--out", "m")
    assert outcome.code == 0
    assert "warning: --rank 50 is more than the 12 distinct row(s)" in outcome.err
    assert all(line.startswith("warning: ") for line in outcome.err.splitlines())


def test_interrupt(certgp, train, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "check_options", interrupted)
    outcome = certgp("fit", train, "--target", "price", "--out", "m")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "interrupted\n")


def test_too_little_memory_and_full_disks_are_one_line(certgp, train, monkeypatch):
    for error, message in [
        (MemoryError("Unable to allocate 9 GiB"), "not enough memory (Unable to allocate 9 GiB); use fewer rows"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ]:

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(fit, "check_options", fail)
        assert message in certgp("fit", train, "--target", "price", "--out", "m").error()


def test_errors_of_the_program_keep_their_traceback(certgp, train, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(fit, "check_options", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        certgp("fit", train, "--target", "price", "--out", "m")


def test_a_traceback_does_not_share_its_line(train, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(fit, "check_model_path", broken)
    terminal = Terminal()
    with redirect_stderr(terminal), pytest.raises(ZeroDivisionError):
        main(["fit", str(train), "--target", "price", "--out", str(train.parent / "m")])
    assert shown(terminal) == [""]


def test_an_echoed_control_c_is_wiped_away():
    console, terminal = Console(), Terminal()
    with redirect_stderr(terminal):
        console.status("fitting")
        terminal.write("^C")
        console.notice("interrupted")
    assert shown(terminal) == ["interrupted", ""]


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["predict", "--help"], ["demo", "--help"]])
def test_help_has_examples(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert out.count("certgp ") >= 3


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"certgp {__version__}\n"


def test_text_helpers():
    assert one_line(" a\n  b\t c ") == "a b c"
    assert aligned([("a", "1"), ("long", "2")]) == "  a     1\n  long  2"
    assert table(("name", "n"), [("a", "10"), ("bcdef", "2")]) == ("  name    n\n  -----  --\n  a      10\n  bcdef   2")


def test_long_lines_are_broken_between_words_and_commands_stay_whole() -> None:
    command = "  to do    certgp certify a.model b.csv --tol 0.1 --yes"
    text = f"  what     a long sentence about many things\n{command}\n  ----  {36 * '-'}"
    lines = in_width(text, 41).split("\n")
    assert lines == [
        "  what     a long sentence about many",
        "           things",
        command,
        "  ----  " + 33 * "-",
    ]
    assert in_width(text, 200) == text
