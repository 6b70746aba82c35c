"""Decoded rows, written once and read again and again: in memory up to a budget, beyond it in a scratch file.

The scratch file has no name, so the system removes it with the process, however that ends. It is read by plain reads
into fresh buffers, not mapped: pages of a map would count as memory of this process until somebody needs them.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import Numbers
from certgp.data.rows import Positions, Rows
from certgp.data.skipped import Skipped
from certgp.errors import DataFileError, InvalidInputError

DEFAULT_MEMORY = 2**30  # bytes of decoded rows that are kept in memory
_GROWTH = 8  # storage grows by an eighth at a time
_SPAN_BYTES = 2**18  # rows that are no further apart come with one read


class NumbersInFile:
    """Rows of numbers (N, width) in an open file from some byte on; positions are read as from an array."""

    def __init__(self, stream: IO[bytes], offset: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._stream, self._offset, self._lock = stream, offset, Lock()
        self.shape, self.dtype = shape, dtype
        self._row_bytes = shape[1] * dtype.itemsize
        weakref.finalize(self, stream.close)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, positions: Positions) -> NDArray[Any]:
        if isinstance(positions, slice):
            start, stop, step = positions.indices(len(self))
            if step == 1:
                return self._read(start, max(start, stop))
            positions = np.arange(start, stop, step)
        return self._gather(positions)

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows in order."""
        found = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._lock:
            self._stream.seek(self._offset + start * self._row_bytes)
            count = self._stream.readinto(found.data.cast("B")) if found.size else 0  # type: ignore[attr-defined]
        if count != found.nbytes:
            raise DataFileError(
                f"{self._stream.name} ends before row {stop - 1}; it was changed while it was read, so read it again"
            )
        return found

    def _gather(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Rows at any positions; neighbours come with one read."""
        order = np.argsort(positions, kind="stable")
        wanted, at = positions[order], 0
        found = np.empty((len(positions), self.shape[1]), dtype=self.dtype)
        span = max(1, _SPAN_BYTES // self._row_bytes)
        while at < len(wanted):
            first = int(wanted[at])
            end = int(np.searchsorted(wanted, first + span))
            found[order[at:end]] = self._read(first, int(wanted[end - 1]) + 1)[wanted[at:end] - first]
            at = end
        return found


class RowStore:
    """Takes rows (n, width) part by part."""

    def __init__(
        self, width: int, dtype: np.dtype[Any], memory: float = DEFAULT_MEMORY, scratch: str | Path | None = None
    ) -> None:
        """More than ``memory`` bytes go to a file in the folder ``scratch``, by default that for temporary files."""
        self._width, self._dtype, self._memory = width, dtype, memory
        self._folder = tempfile.gettempdir() if scratch is None else str(scratch)
        if not Path(self._folder).is_dir():
            raise InvalidInputError(f"scratch must be a folder that exists, found {self._folder!r}; make it first")
        self._values, self._filled = np.empty((0, width), dtype), 0
        self._file: IO[bytes] | None = None

    def append(self, part: NDArray[Any]) -> None:
        """Take in some rows."""
        needed = self._filled + len(part)
        if self._file is None and needed * self._width * self._dtype.itemsize > self._memory:
            self._file = self._open()
            self._write(self._values[: self._filled])
            self._values = np.empty((0, self._width), self._dtype)
        if self._file is not None:
            self._write(part)
        else:
            if needed > len(self._values):  # the system moves pages instead of copying numbers
                self._values.resize((needed + needed // _GROWTH, self._width), refcheck=False)
            self._values[self._filled : needed] = part
        self._filled = needed

    def numbers(self) -> NDArray[Any] | NumbersInFile:
        """All rows; nothing may be added afterwards."""
        if self._file is None:
            self._values.resize((self._filled, self._width), refcheck=False)
            return self._values
        self._file.flush()
        return NumbersInFile(self._file, 0, (self._filled, self._width), self._dtype)

    def _open(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self._folder)
        except OSError as error:
            raise self._trouble(error) from error

    def _write(self, part: NDArray[Any]) -> None:
        if self._file is None or not part.size:
            return
        try:
            self._file.write(np.ascontiguousarray(part, self._dtype).data.cast("B"))
        except OSError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: OSError) -> DataFileError:
        return DataFileError(
            f"decoded rows cannot be written to a scratch file in {self._folder} ({error.strerror}); name a folder "
            "with room (scratch=, --scratch), or keep more in memory (memory=, --memory)"
        )


class StoredRows(Rows):
    """Rows of numbers whose first columns are the inputs, followed by target and weight where there are any."""

    def __init__(
        self,
        numbers: NDArray[Any] | NumbersInFile,
        n_inputs: int,
        names: tuple[str, ...] | None = None,
        *,
        target: int | tuple[int, ...] | None = None,
        weight: int | None = None,
        skipped: Skipped | None = None,
    ) -> None:
        """``target`` and ``weight`` are numbers of columns, of several outputs several; ``skipped`` says what reading
        left out.
        """
        self.n_rows, self.n_columns = numbers.shape[0], n_inputs
        self.names, self.skipped = names, skipped
        self._numbers, self._weight = numbers, weight
        self._target = list(target) if isinstance(target, tuple) else target

    @property
    def on_disk(self) -> bool:
        """Are the rows in a file instead of in memory?"""
        return isinstance(self._numbers, NumbersInFile)

    @property
    def nbytes(self) -> int:
        """Of all numbers."""
        return int(self._numbers.shape[0] * self._numbers.shape[1] * self._numbers.dtype.itemsize)

    def stored(self, positions: Positions) -> StoredRows:
        """A copy of some rows, in memory."""
        return self._with(self._numbers[positions].copy())

    def joined(self, others: Sequence[StoredRows]) -> StoredRows:
        """These rows and others with the same columns, in memory."""
        return self._with(np.concatenate([each._numbers[:] for each in (self, *others)]))

    def _with(self, numbers: NDArray[Any]) -> StoredRows:
        target = tuple(self._target) if isinstance(self._target, list) else self._target
        return StoredRows(numbers, self.n_columns, self.names, target=target, weight=self._weight)

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        found = self._numbers[positions]
        # contiguous, so that sums over them are rounded as those of an array in memory
        X = np.ascontiguousarray(found[:, : self.n_columns])
        return X, None if self._target is None else np.ascontiguousarray(found[:, self._target])

    def weights(self, positions: Positions) -> NDArray[np.float64] | None:
        if self._weight is None:
            return None
        numbers, column = np.arange(self.n_rows)[positions], self._weight
        parts = np.array_split(numbers, max(1, len(numbers) * self._numbers.shape[1] * 8 // _SPAN_BYTES))
        return np.concatenate([self._numbers[part][:, column] for part in parts], dtype=np.float64)
