"""The command line as a function, and one fitted model for the tests that only predict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_cases import Outcome, rows, write

from certgp.cli.main import main


@pytest.fixture
def certgp(capsys, monkeypatch, tmp_path) -> Callable[..., Outcome]:
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: object) -> Outcome:
        code = main([str(arg) for arg in argv])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def train(tmp_path) -> Path:
    return write(tmp_path / "train.csv", rows())


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    data = write(folder / "train.csv", rows())
    path = folder / "price.model"
    assert main(["fit", str(data), "--target", "price", "--rank", "20", "--out", str(path)]) == 0
    return path
