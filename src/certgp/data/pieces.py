"""Rows of files by description: which rows of which files, to be decoded wherever the description is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from certgp.data.files import Keeping, Layout, choose_type, read_stream
from certgp.data.reading import count_rows, read_range
from certgp.data.skipped import Skipped
from certgp.data.store import RowStore, StoredRows
from certgp.data.streams import Stream
from certgp.data.tables import TableFiles
from certgp.errors import DataFileError


@dataclass(frozen=True)
class Piece:
    """Rows ``start`` to ``stop`` of a file; where bad rows are skipped, of those that are left."""

    path: Path
    start: int
    stop: int


@dataclass(frozen=True)
class Reading:
    """How pieces are decoded."""

    layout: Layout
    names: tuple[str, ...] | None  # of the inputs; None where files have no names
    skips: bool
    dtype: np.dtype[Any]

    @staticmethod
    def of(files: TableFiles, layout: Layout, dtype: str = "auto") -> Reading:
        """That of some files, of which only headers are read here."""
        Keeping(dtype=dtype)  # refuses unknown ones
        names = None if files.nameless else layout.inputs
        return Reading(layout, names, files.skipped is not None, choose_type(files, layout, dtype))

    def count(self, path: Path) -> tuple[int, Skipped | None]:
        """Rows of a file that can be used, and what was left out of it."""
        check_seen(path)
        skipped = Skipped() if self.skips else None
        return count_rows(path, self.layout.columns, skipped), skipped

    def decode(self, pieces: Sequence[Piece]) -> StoredRows:
        """The rows of some pieces, in memory."""
        store = RowStore(len(self.layout.columns), self.dtype, memory=np.inf)
        for piece in pieces:
            check_seen(piece.path)
            for values in read_range(piece.path, self.layout.columns, piece.start, piece.stop, self.skips):
                store.append(values)
        pa.default_memory_pool().release_unused()
        return self.layout.rows(store.numbers(), self.names, None)

    def decode_batch(self, batch: Any, what: str) -> StoredRows:
        """The same of a batch in memory: a frame, or an array with the columns of the layout."""

        def batches(names: list[str]) -> Iterator[Any]:
            yield np.asarray(batch, dtype=np.float64) if isinstance(batch, np.ndarray) else batch[names]

        stream = Stream(what, self.layout.columns, self.names is None, batches)
        numbers = read_stream(stream, self.layout, Keeping(np.inf), Skipped() if self.skips else None)
        return self.layout.rows(numbers, self.names, None)


def cut(files: Sequence[tuple[Path, int]], rows: int) -> list[list[Piece]]:
    """Files of so many rows in parts of ``rows`` rows each, the last of fewer; a part may reach over several files."""
    parts: list[list[Piece]] = [[]]
    room = rows
    for path, count in files:
        at = 0
        while at < count:
            if room == 0:
                parts.append([])
                room = rows
            stop = min(count, at + room)
            parts[-1].append(Piece(path, at, stop))
            room, at = room - (stop - at), stop
    return parts


def join_skipped(found: Sequence[Skipped | None], known: Skipped | None) -> Skipped | None:
    """What was left out in all, added to what is known already."""
    for each in found:
        if known is not None and each is not None:
            known.add(each)
    return known


def check_seen(path: Path) -> None:
    """Refuse a file that a machine of a cluster does not have."""
    if not path.exists():
        raise DataFileError(
            f"this process does not see {path}; a cluster reads files itself, so put them in a folder that all its "
            "machines have under the same name, or let this process send the rows (certgp.read)"
        )
