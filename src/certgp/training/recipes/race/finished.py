"""Fits of a race that are done, on disk: a race that was interrupted does not repeat them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import CertgpWarning, CheckpointError
from certgp.gp.description import build_process, describe_process
from certgp.training.checkpoint import Checkpoint
from certgp.training.evaluation_log import FitCheckpoint
from certgp.training.history import History, Iteration, OptimisationResult
from certgp.training.recipes.race.entry import Entry
from certgp.training.recipes.race.standing import Standing
from certgp.training.recipes.trainer import Fit

Values = dict[str, Any]
_DIGITS = 8
_PART = ".part-"  # behind the name of the file, with digits for the fit: what one that is not done keeps


class FinishedFits:
    """Standings by a key that says which method was trained how long on how many rows; without a file, none."""

    def __init__(self, given: FitCheckpoint | None) -> None:
        """Refuses the file of another race."""
        self._given = given
        self._tensors: dict[str, Tensor] = {}
        self._values: Values = {}
        if given is None:
            return
        if not given.path.parent.is_dir():
            raise CheckpointError(f"checkpoint: there is no directory {given.path.parent}; make it first")
        self._file = Checkpoint(given.path, given.fingerprint)
        known = self._file.read()
        if known is None:
            self._file.write({}, {})
        else:
            self._tensors, self._values = known

    @property
    def are_kept(self) -> bool:
        """Is there a file?"""
        return self._given is not None

    def part(self, key: str) -> FitCheckpoint | None:
        """Where the fit of this key keeps what it needs to go on."""
        if self._given is None:
            return None
        return FitCheckpoint(self._part_path(self._given.path, key), f"{self._given.fingerprint}:{key}")

    def add(self, key: str, standing: Standing) -> None:
        """Keep a fit that is done."""
        if self._given is None:
            return
        tensors, values = _describe(standing)
        # a copy of each: a file must not be told that two methods hold the same rows
        self._tensors |= {f"{key}/{name}": tensor.detach().clone() for name, tensor in tensors.items()}
        self._values[key] = values
        self._file.write(self._tensors, self._values)

    def recall(self, key: str, entry: Entry, positions: NDArray[np.int64], before: Standing | None) -> Standing | None:
        """The standing of a fit that was done before the interruption; None where there is none."""
        if key not in self._values:
            return None
        prefix = f"{key}/"
        mine = {name.removeprefix(prefix): each for name, each in self._tensors.items() if name.startswith(prefix)}
        return _build(mine, self._values[key], entry, positions, before)

    def drop_part(self, key: str) -> None:
        """A fit failed: what it kept is of no use."""
        if self._given is not None:
            self._part_path(self._given.path, key).unlink(missing_ok=True)

    def remove(self) -> None:
        """The race is over; its files are not needed any more."""
        if self._given is None:
            return
        path = self._given.path
        for part in path.parent.glob(f"{escape(path.name)}{_PART}{'[0-9a-f]' * _DIGITS}*"):  # of a member, too
            part.unlink()
        self._file.remove()

    @staticmethod
    def _part_path(path: Path, key: str) -> Path:
        return path.with_name(f"{path.name}{_PART}{sha256(key.encode()).hexdigest()[:_DIGITS]}")


@contextmanager
def open_finished(given: FitCheckpoint | None, is_put_off: Callable[[], bool]) -> Iterator[FinishedFits]:
    """The finished fits of a race: they stay where it is interrupted or put off and are removed when it is done."""
    finished = FinishedFits(given)
    yield finished
    if not is_put_off():
        finished.remove()


def _describe(standing: Standing) -> tuple[dict[str, Tensor], Values]:
    tensors, process = describe_process(standing.fit.process)
    outcome = standing.fit.outcome
    return tensors | {"losses": torch.from_numpy(standing.losses), "at": torch.from_numpy(outcome.parameters)}, {
        "process": process,
        "outcome": asdict(replace(outcome, parameters=np.zeros(0), history=History()))
        | {"parameters": None, "history": [asdict(each) for each in outcome.history]},
        "seconds": standing.seconds,
        "warnings": [[type(each).__name__, str(each)] for each in standing.warnings],
    }


def _build(
    tensors: dict[str, Tensor], values: Values, entry: Entry, positions: NDArray[np.int64], before: Standing | None
) -> Standing:
    process = build_process(tensors, values["process"], None)
    history = History(tuple(Iteration(**each) for each in values["outcome"]["history"]))
    at: Values = {"parameters": tensors["at"].numpy(), "history": history}
    outcome = OptimisationResult(**values["outcome"] | at)
    known: list[type[CertgpWarning]] = [CertgpWarning, *CertgpWarning.__subclasses__()]
    kinds = {each.__name__: each for each in known}
    said = tuple(kinds.get(name, UserWarning)(text) for name, text in values["warnings"])
    losses = tensors["losses"].numpy()
    return Standing(entry, Fit(process, outcome), positions, losses, values["seconds"], said, before)
