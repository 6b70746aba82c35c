"""Commands of other packages, through the entry points of packages that are made for the test."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

WORKING = """
    from certgp.cli.arguments import add_command

    def add_parser(commands):
        add_command(commands, "{name}", "say hello", "  certgp {name}", run)

    def run(arguments, console):
        console.result({{"hello": True}}, "hello from {name}")
"""
HALF = """
    def add_parser(commands):
        commands.add_parser("half")
        raise KeyError("the other half")
"""


@pytest.fixture
def install(tmp_path_factory, monkeypatch):
    """Put a package with one module and one entry point on the path, as pip would."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)

    def make(package: str, command: str, source: str) -> None:
        (folder / f"{package}.py").write_text(textwrap.dedent(source))
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[certgp.commands]\n{command} = {package}\n")

    yield make
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
            del sys.modules[name]


@pytest.fixture
def without_paper(monkeypatch):
    """As if certgp-paper were not installed."""
    from importlib import metadata

    found = metadata.entry_points

    def others(**options):
        return [point for point in found(**options) if not point.value.startswith("certgp_paper.")]

    monkeypatch.setattr(metadata, "entry_points", others)


def test_a_package_adds_a_command(certgp, install):
    install("greeter", "greet", WORKING.format(name="greet"))
    outcome = certgp("greet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "hello from greet\n", "")
    assert certgp("greet", "--json").out == '{"hello": true}\n'


def test_help_lists_it(certgp, install, capsys):
    install("greeter", "greet", WORKING.format(name="greet"))
    with pytest.raises(SystemExit) as left:
        certgp("--help")
    assert left.value.code == 0
    assert "say hello" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import a_package_that_is_not_there", "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"),
        ("add_parser = None", "TypeError"),
        ("", "AttributeError"),
        (HALF, "KeyError: 'the other half'"),
    ],
    ids=["import", "call", "nothing", "half"],
)
def test_a_broken_package_is_named_and_breaks_nothing_else(certgp, install, source, reason):
    install("broken", "half", source)
    install("greeter", "greet", WORKING.format(name="greet"))
    outcome = certgp("greet")
    assert (outcome.code, outcome.out) == (0, "hello from greet\n")
    assert outcome.err.startswith("warning: the command half of the package broken does not work and is left out (")
    assert reason in outcome.err
    assert outcome.err.count("\n") == 1
    refused = certgp("half")
    assert refused.code == 2
    assert "invalid choice: 'half'" in refused.err


def test_commands_of_certgp_do_not_even_look(certgp, install):
    install("broken", "half", "raise RuntimeError('loaded')")
    assert "does not exist" in certgp("fit", "gone.csv", "--target", "y", "--out", "m").error()


@pytest.mark.parametrize("entry", ["fit", "other"])
def test_the_commands_of_certgp_win(certgp, install, entry):
    install("impostor", entry, WORKING.format(name="fit"))
    install("greeter", "greet", WORKING.format(name="greet"))
    outcome = certgp("greet")
    assert outcome.code == 0
    assert outcome.err == (
        f"warning: the command {entry} of the package impostor is left out: there is already a command fit\n"
    )
    assert "does not exist" in certgp("fit", "gone.csv", "--target", "y", "--out", "m").error()


@pytest.mark.usefixtures("without_paper")
@pytest.mark.parametrize("arguments", [["reproduce", "all"], ["datasets", "list"], ["datasets", "--help"]])
def test_without_the_paper_its_commands_say_how_to_get_them(certgp, arguments):
    message = certgp(*arguments).error()
    assert f"'certgp {arguments[0]}' comes with the package certgp-paper, which is not installed" in message
    assert "pip install ./paper" in message


@pytest.mark.usefixtures("without_paper")
def test_an_unknown_command_is_refused_as_ever(certgp):
    assert "invalid choice: 'repruduce'" in certgp("repruduce").error()
