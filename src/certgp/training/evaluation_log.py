"""An interrupted fit goes on where it was: every evaluation of the objective is written down and can be replayed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from certgp.errors import CheckpointError

Array = NDArray[np.float64]
_MAGIC = b"certgp checkpoint 1\n"


class EvaluationLog:
    """Values and gradients of the objective in the order in which the optimiser asked for them.

    Between two evaluations a fit is deterministic and cheap, so replaying the evaluations brings it to the very state
    it was in, curvature pairs of L-BFGS included: a resumed fit ends with the same numbers as one that was never
    interrupted. The file is only ever appended to, one record per evaluation, and a record cut off by a crash is
    ignored.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """``fingerprint`` stands for the data and parameters of the fit; a file of another fit is refused."""
        self.path, self.is_kept = path, False
        self._replay: list[tuple[Array, float, Array]] = []
        self._next = 0
        header = _MAGIC + fingerprint.encode() + b"\n"
        if path.exists() and path.stat().st_size > 0:
            end = self._read(header)
            self._file: BinaryIO = path.open("r+b")
            self._file.truncate(end)
            self._file.seek(end)
        else:
            if not path.parent.is_dir():
                raise CheckpointError(f"checkpoint: there is no directory {path.parent}; make it first")
            self._file = path.open("wb")
            self._file.write(header)
            self._flush()

    def __len__(self) -> int:
        """Evaluations that can be replayed."""
        return len(self._replay)

    def recall(self, values: Array) -> tuple[float, Array] | None:
        """The next recorded evaluation, which must be of these parameters; None when all have been replayed."""
        if self._next >= len(self._replay):
            return None
        parameters, value, gradient = self._replay[self._next]
        if parameters.shape != values.shape or not np.array_equal(parameters, values):
            raise CheckpointError(
                f"the checkpoint {self.path} does not lead to the same fit here (another version, machine or number "
                "of threads wrote it); delete it to start anew"
            )
        self._next += 1
        return value, gradient.copy()

    def record(self, values: Array, value: float, gradient: Array) -> None:
        """Append an evaluation."""
        self._file.write(np.int64(len(values)).tobytes())
        self._file.write(np.concatenate([values, [value], gradient]).astype(np.float64).tobytes())
        self._flush()

    def close(self) -> None:
        """Stop writing; the file stays."""
        self._file.close()

    def remove(self) -> None:
        """The fit is finished: its checkpoint is of no use any more."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, header: bytes) -> int:
        """Load whole records; the position behind the last one."""
        content = self.path.read_bytes()
        if not content.startswith(_MAGIC):
            raise CheckpointError(f"checkpoint: {self.path} is not a checkpoint of certgp; choose another path")
        if not content.startswith(header):
            raise CheckpointError(
                f"checkpoint: {self.path} was written by a fit of other data or with other parameters; delete it to "
                "start anew or choose another path"
            )
        at = len(header)
        while at + 8 <= len(content):
            count = int(np.frombuffer(content, np.int64, 1, at)[0])
            end = at + 8 + 8 * (2 * count + 1)
            if end > len(content):
                break
            numbers = np.frombuffer(content, np.float64, 2 * count + 1, at + 8)
            self._replay.append((numbers[:count], float(numbers[count]), numbers[count + 1 :]))
            at = end
        return at


def recorded(
    log: EvaluationLog | None, function: Callable[[float], tuple[float, float]]
) -> Callable[[float], tuple[float, float]]:
    """A function of one number that gives two, each evaluation of it replayed or written down."""
    if log is None:
        return function

    def evaluate(at: float) -> tuple[float, float]:
        known = log.recall(np.array([at]))
        if known is not None:
            return known[0], float(known[1][0])
        value, other = function(at)
        log.record(np.array([at]), value, np.array([other]))
        return value, other

    return evaluate


@dataclass(frozen=True)
class FitCheckpoint:
    """Where a fit keeps what it needs to go on after an interruption, and what identifies the fit."""

    path: Path
    fingerprint: str  # of the data, the parameters and the seed
    one_file_per_rank: bool = False
    opened: EvaluationLog | None = None  # where this fit is one of several that share a file, in a fixed order

    def of_member(self, number: int, seed: int, members: int) -> FitCheckpoint:
        """The checkpoint of one of several networks."""
        path = self.path if members == 1 else self.path.with_name(f"{self.path.name}.{number}")
        return FitCheckpoint(path, f"{self.fingerprint}:{seed}")


def keep_if(put_off: str | None, log: EvaluationLog | None) -> None:
    """A fit that was put off, for some reason, can go on from its log later."""
    if log is not None:
        log.is_kept = log.is_kept or put_off is not None


@contextmanager
def open_log(checkpoint: FitCheckpoint | None, rank: int) -> Iterator[EvaluationLog | None]:
    """The log of a fit at this rank: it stays when the fit is interrupted or put off and is removed when it is done."""
    if checkpoint is None or checkpoint.opened is not None:
        yield None if checkpoint is None else checkpoint.opened
        return
    path = checkpoint.path
    if checkpoint.one_file_per_rank:
        path = path.with_name(f"{path.name}.{rank}")
    log = EvaluationLog(path, checkpoint.fingerprint)
    try:
        yield log
    except BaseException:
        log.close()
        raise
    if log.is_kept:
        log.close()
    else:
        log.remove()
