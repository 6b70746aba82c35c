"""Shell completion, in a real bash; other shells by what their scripts hold."""

from __future__ import annotations

import json
import subprocess

import pytest

from certgp.cli.completion import describe
from certgp.cli.main import build_parser
from certgp.cli.output import Console


def completions(script: str, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _certgp; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("certgp", "pre"), ["predict"]),
        (("certgp", "fit", "t.csv", "--time"), ["--time-limit", "--time-split"]),
        (("certgp", "fit", "t.csv", "--noise", ""), ["auto", "constant", "input"]),
        (("certgp", "certify", "--exa"), ["--exact-solve"]),
        (("certgp", "completion", "f"), ["fish"]),
        (("certgp", "fit", "t"), []),  # bash's own file names follow
        (("certgp", "fit", "--target", "--"), []),  # the value of an option
    ],
)
def test_bash(certgp, words, expected):
    assert completions(certgp("completion", "bash").out, *words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_there(certgp, shell):
    script = json.loads(certgp("completion", shell, "--json").out)["script"]
    commands = describe(build_parser(["--help"], Console()))
    assert {"fit", "predict", "certify", "report", "rank", "demo", "completion"} <= {each.name for each in commands}
    for command in commands:
        assert command.name in script
        for option in command.options:
            for name in option.names:
                fish = f"-l {name[2:]} " if name.startswith("--") else f"-s {name[1:]} "
                assert (fish if shell == "fish" else name) in script


def test_a_shell_that_is_not_known(certgp):
    assert "'tcsh'" in certgp("completion", "tcsh").error()
