"""As for the library's tests: one torch thread, and the command line as a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch

from certgp.cli.main import main


@pytest.fixture(scope="session", autouse=True)
def single_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a command."""

    code: int
    out: str
    err: str

    def error(self) -> str:
        """The one line of a refused command."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("error: ")
        return self.err


@pytest.fixture
def certgp(capsys, monkeypatch, tmp_path) -> Callable[..., Outcome]:
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: object) -> Outcome:
        code = main([str(arg) for arg in argv])
        return Outcome(code, *capsys.readouterr())

    return run
