"""Tables of any types, read as often as it takes, some rows at a time: frames in memory, and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.data.csv_text import DELIMITERS
from certgp.data.reading import ending, numbers_in_file, place_of, raw_batches, refuse_empty
from certgp.data.rows import is_from
from certgp.data.skipped import Skipped
from certgp.data.tables import TableFiles
from certgp.errors import DataFileError
from certgp.tabular.parsing import GAP_WORDS, TextFormat, plain

_BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class RawPart:
    """Some rows of a table."""

    columns: Mapping[str, pa.Array]
    start: int  # number of the first among the rows that could be read, from 0
    rows: NDArray[np.int64]  # their numbers in the table, from 0: lines that were left out count

    def __len__(self) -> int:
        return len(self.rows)


class RawTable(ABC):
    """Named columns of any type; every pass gives the same rows."""

    names: tuple[str, ...]
    title: str  # what messages call it
    of_files: bool  # is advice for the command line, or for Python?
    text: TextFormat = TextFormat()

    @abstractmethod
    def parts(self, names: Sequence[str]) -> Iterator[RawPart]:
        """The named columns of all rows, some rows at a time."""

    @abstractmethod
    def place(self, row: int) -> str:
        """What messages call a row, by its number from 0."""

    def first_part(self, names: Sequence[str]) -> RawPart | None:
        """The first rows; None where there are none."""
        return next(iter(self.parts(names)), None)


class FrameTable(RawTable):
    """A pandas or polars frame, an Arrow table or an array in memory."""

    of_files = False

    def __init__(self, frame: Any, title: str = "the table", place: str = "row {} (counted from 0)") -> None:
        self._table, self._place = as_arrow(frame), place
        self.names = tuple(self._table.column_names)
        self.title = title

    def parts(self, names: Sequence[str]) -> Iterator[RawPart]:
        chosen, n = self._table.select(list(names)), self._table.num_rows
        for start in range(0, n, _BATCH_ROWS):
            some = chosen.slice(start, _BATCH_ROWS)
            columns = {name: plain(some.column(name)) for name in names}
            yield RawPart(columns, start, np.arange(start, start + some.num_rows))

    def place(self, row: int) -> str:
        return self._place.format(row)


class FileTable(RawTable):
    """Files that form one table."""

    of_files = True

    def __init__(self, files: TableFiles, text: TextFormat) -> None:
        self.files, self.text, self.names = files, text, files.names
        self.title = str(files.files[0]) if len(files.files) == 1 else f"{len(files.files)} files"
        self.ragged: dict[Path, int] = {}  # lines with too few or too many fields that the last pass left out
        self._ends: list[int] = []  # of each file, the number of the row behind its last
        self._parsed: list[int] = []  # the same among the rows that could be read

    def parts(self, names: Sequence[str]) -> Iterator[RawPart]:
        skipped, before, start = self.files.skipped, 0, 0
        self._ends, self._parsed, self.ragged = [], [], {}
        for path in self.files.files:
            gap_words = gap_words_of(path)
            lines: list[int] = []
            parsed = 0
            try:
                for batch in raw_batches(path, names, self.text.sep, None if skipped is None else lines):
                    rows = before + numbers_in_file(np.arange(parsed, parsed + batch.num_rows), lines)
                    columns = {name: plain(batch.column(name), gap_words) for name in names}
                    yield RawPart(columns, start + parsed, rows)
                    parsed += batch.num_rows
                if parsed + len(lines) == 0:
                    refuse_empty(path, skipped)
            except DataFileError as error:
                if skipped is None:
                    raise
                skipped.add_file(path, str(error) if not parsed else f"from row {parsed + 1} on, {error}")
            before, start = before + parsed + len(lines), start + parsed
            self._ends.append(before)
            self._parsed.append(start)
            self.ragged[path] = len(lines)

    def without_damage(self) -> FileTable:
        """The same rows but for lines of other lengths and what cannot be read."""
        return FileTable(replace(self.files, skipped=Skipped()), self.text)

    def further_damage(self) -> list[str]:
        """How many lines of other lengths the last pass left out, where there was more than one."""
        lines = sum(self.ragged.values())
        return [f"{lines:,} lines in all have more or fewer fields than the header"] if lines > 1 else []

    def count_left_out(self, rows: NDArray[np.int64]) -> None:
        """Note what is left out of the table: lines of other lengths, and these of the rows that could be read."""
        if self.files.skipped is None:
            return
        counts = np.bincount(np.searchsorted(self._parsed, rows, side="right"), minlength=len(self.files.files))
        for path, count in zip(self.files.files, counts, strict=True):
            self.files.skipped.add_rows(path, int(count) + self.ragged.get(path, 0))

    def place(self, row: int) -> str:
        file = int(np.searchsorted(self._ends, row, side="right")) if self._ends else 0
        path = self.files.files[min(file, len(self.files.files) - 1)]
        number = row - (self._ends[file - 1] if file else 0)
        where = place_of(path, number)
        return f"row {number + 1}{where}" if len(self.files.files) == 1 else f"row {number + 1} of {path}{where}"


def gap_words_of(path: Path) -> tuple[str, ...]:
    """Words for gaps in a file: those of texts are many, other formats know gaps themselves."""
    return GAP_WORDS if ending(path) in DELIMITERS else ("",)


def as_arrow(frame: Any) -> pa.Table:
    """A frame or an array as an Arrow table; columns of arrays are called x0, x1, ..."""
    if isinstance(frame, pa.Table):
        return frame
    if is_from(frame, "polars", "DataFrame"):
        return frame.to_arrow()
    if is_from(frame, "pandas", "DataFrame"):
        names = [str(name) for name in frame.columns]
        return pa.table([_column(frame.iloc[:, j]) for j in range(frame.shape[1])], names=names)
    array = np.asarray(frame)
    return pa.table(
        [_column(array[:, j]) for j in range(array.shape[1])], names=[f"x{j}" for j in range(array.shape[1])]
    )


def _column(values: Any) -> pa.Array:
    """Values of one type, or else their texts."""
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        found = pa.array([None if each is None or each != each else str(each) for each in values], pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
