"""Finished cells on disk, so that an interrupted run goes on where it was.

FAMILY.jsonl holds a cell per line; the last line of a cell counts. A line is appended with one write and forced to the
disk before the next cell begins. A run that is killed while it writes leaves an incomplete last line, which readers
ignore and the next writer removes. Several processes may fill one file: a writer locks it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import certgp
import certgp_paper
from certgp.data.tables import replacing
from certgp.errors import CertgpError, DataFileError
from certgp_paper.experiments.cells import Cell, Finished, Values
from certgp_paper.experiments.code import Compute, cell_version, is_outdated

_Lines = dict[frozenset[tuple[str, Any]], Values]  # content of a file by the key of the cell


class CellStore:
    """The finished cells of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, tuple[tuple[int, int, int], _Lines]] = {}  # by family: which state of the file, its lines

    def load(self, cell: Cell) -> Finished | None:
        """The finished cell, or None where it has not been computed."""
        line = self._lines(cell.family).get(cell.key)
        return None if line is None else Finished(cell, line["result"], line["seconds"], line["made_by"])

    def finished(self, cells: Sequence[Cell]) -> list[Finished]:
        """Those of the cells that have been computed, in the order of ``cells``."""
        return [kept for cell in cells if (kept := self.load(cell)) is not None]

    def save(self, finished: Finished) -> None:
        """Append a finished cell; when this returns, it is on the disk."""
        line = _line(_content(finished))  # before the file is touched: it may hold what JSON does not know
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.path(finished.cell.family)) as stream:
            _complete_last_line(stream)
            _write(stream, line)

    def confirm(self, cells: Sequence[Finished], confirmed: Values) -> None:
        """Note beside the version that made them that these cells are also those of another one.

        Cells that another process has replaced in the meantime stay as they are.
        """
        for family, some in _by_family(cells).items():
            with _locked(self.path(family)) as stream:
                lines = _parse(self.path(family), stream.read())
                held = [cell for cell in some if lines.get(cell.cell.key) == _content(cell)]
                marked = [replace(cell, made_by={**cell.made_by, "confirmed": dict(confirmed)}) for cell in held]
                _complete_last_line(stream)
                _write(stream, b"".join(_line(_content(cell)) for cell in marked))
            self.compact(family)

    def compact(self, family: str) -> None:
        """Drop lines that a later one replaces, in one step: the file is the old or the new one, whole."""
        path = self.path(family)
        if not path.exists():
            return
        with _locked(path) as stream:
            before = stream.read()
            after = b"".join(_line(content) for content in _parse(path, before).values())
            if after != before:
                with replacing(path) as temporary, temporary.open("wb") as copy:
                    _write(copy, after)

    def path(self, family: str) -> Path:
        """The file of a family."""
        return self.folder / f"{family}.jsonl"

    def _lines(self, family: str) -> _Lines:
        """What the file holds now, read again only where it has changed: other processes may write to it."""
        try:
            stat = self.path(family).stat()
        except FileNotFoundError:
            return {}
        state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        known, lines = self._read.get(family, (None, {}))
        if known != state:
            lines = _parse(self.path(family), self.path(family).read_bytes())
            self._read[family] = state, lines
        return lines


def _parse(path: Path, content: bytes) -> _Lines:
    """The cells of a file by their key, in the order of their last lines."""
    *whole, last = content.split(b"\n")
    lines: _Lines = {}
    for number, text in enumerate([*whole, last] if _is_json(last) else whole, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            key = frozenset(line["settings"].items())
            if not isinstance(line["result"], dict) or not line["result"]:
                raise TypeError("it has no results")
            _ = line["seconds"], line["made_by"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataFileError(
                f"{path}, line {number} is not a finished cell ({error}); delete the line to compute the cell again"
            ) from error
        lines.pop(key, None)
        lines[key] = line
    return lines


def _by_family(cells: Sequence[Finished]) -> dict[str, list[Finished]]:
    families = dict.fromkeys(cell.cell.family for cell in cells)
    return {family: [cell for cell in cells if cell.cell.family == family] for family in families}


def _content(finished: Finished) -> dict[str, Any]:
    return {
        "settings": dict(finished.cell.settings),
        "result": dict(finished.result),
        "seconds": round(finished.seconds, 3),
        "made_by": dict(finished.made_by),
    }


def _line(content: Values) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"


def _write(stream: BinaryIO, content: bytes) -> None:
    """Write and wait until the disk has it."""
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _complete_last_line(stream: BinaryIO) -> None:
    """End the last line where only its line break is missing; remove it where more is, as after a kill."""
    stream.seek(0)
    content = stream.read()
    last = content[content.rfind(b"\n") + 1 :]
    if _is_json(last):
        stream.write(b"\n")
    elif last:
        stream.truncate(len(content) - len(last))


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """The file, at its beginning, open to be read and appended to by this process alone."""
    while True:
        with path.open("a+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # ends with the process, however that ends
            if not os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                continue  # replaced by ``compact`` of another process while this one waited
            stream.seek(0)
            yield stream
            return


def compute_cells(
    cells: Sequence[Cell],
    compute: Compute,
    store: CellStore,
    announce: Callable[[Cell, int, int], None] = lambda cell, number, total: None,
    failed: Callable[[Cell, Exception], None] | None = None,
    renew: bool = False,
) -> Iterator[Finished]:
    """All cells, in order: those in the store as they are, the others computed and kept at once.

    With ``renew``, cells that are out of date are computed again; the new line says what the old
    one was. One that fails keeps its old line.

    ``announce(cell, number, total)`` is called before each computation. A cell that fails, or whose result is not a
    finite number, is told to ``failed`` and left out, to be tried again by the next run; without it the error ends this
    one.
    """
    for number, cell in enumerate(cells, 1):
        kept = store.load(cell)
        if kept is None or (renew and is_outdated(kept, compute)):
            announce(cell, number, len(cells))
            try:
                kept = _compute(cell, compute, kept)
                store.save(kept)
            except (CertgpError, ValueError, ArithmeticError, RuntimeError) as error:
                if failed is None or isinstance(error, DataFileError):
                    raise
                failed(cell, error)
                continue
        yield kept
    for family in dict.fromkeys(cell.family for cell in cells):
        store.compact(family)


def _compute(cell: Cell, compute: Compute, before: Finished | None) -> Finished:
    version = cell_version(cell, compute)  # of the code as it is when the computation begins
    started = time.perf_counter()
    result = compute(cell.settings)
    made_by: dict[str, Any] = {
        "certgp": certgp.__version__,
        "version": version,
        "source": source_hash(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
    }
    if before is not None:
        figures = {key: value for key, value in before.result.items() if isinstance(value, (int, float))}
        made_by["before"] = {"version": before.made_by.get("version"), **figures}
    return Finished(cell, result, time.perf_counter() - started, made_by)


@cache
def source_hash() -> str:
    """Twelve digits that change with every change of the code of both packages: which state of the tree it was."""
    digest = sha256()
    for package in (certgp, certgp_paper):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
