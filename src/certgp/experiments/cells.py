"""Pieces of an experiment that are computed and kept one by one, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from certgp import __version__
from certgp.data.tables import replacing
from certgp.errors import CertgpError, DataFileError, InvalidInputError

Scalar = str | int | float | bool | None
Settings = Mapping[str, Scalar]
Values = Mapping[str, Any]  # anything JSON can hold
_UNSAFE = re.compile(r"[^A-Za-z0-9.+_]+")


def whole_number(settings: Settings, key: str) -> int:
    """A setting that is a whole number."""
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"the setting {key} must be a whole number, found {value!r}")
    return value


@dataclass(frozen=True)
class Cell:
    """What one piece computes: the family of experiments it belongs to, and the settings that make it this piece.

    Cells with the same family and settings are the same computation, whichever table or figure shows them.
    """

    family: str
    settings: Settings

    @property
    def name(self) -> str:
        """The settings' values as a file name."""
        return "-".join(_UNSAFE.sub("_", str(value)) for value in self.settings.values())

    @property
    def file(self) -> Path:
        """Where a store keeps it, within its folder."""
        return Path(self.family) / f"{self.name}.json"


@dataclass(frozen=True)
class Finished:
    """A cell, what came out of it and how long it took."""

    cell: Cell
    result: Values
    seconds: float
    made_by: Values = field(default_factory=dict)  # versions of the package, its source and Python

    def __getitem__(self, key: str) -> Any:
        """A setting or a result by name."""
        if key in self.cell.settings:
            return self.cell.settings[key]
        if key not in self.result:
            raise _not_finished(self.cell.file, f"it has no {key}")
        return self.result[key]


@dataclass(frozen=True)
class CellStore:
    """Finished cells as ``folder/family/name.json``, each written whole or not at all.

    One file a cell: several processes may fill one folder, and version control sees which cells are new.
    """

    folder: Path

    def load(self, cell: Cell) -> Finished | None:
        """The finished cell, or None where it has not been computed."""
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text())
            kept = Finished(cell, content["result"], content["seconds"], content["made_by"])
            if not isinstance(kept.result, dict) or not kept.result:
                raise TypeError("it has no results")
        except (ValueError, KeyError, TypeError) as error:
            raise _not_finished(path, error) from error
        if dict(content["settings"]) != dict(cell.settings):
            raise DataFileError(f"{path} holds the cell {content['settings']}, wanted {dict(cell.settings)}; delete it")
        return kept

    def save(self, finished: Finished) -> None:
        """Keep a finished cell."""
        path = self._path(finished.cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "settings": dict(finished.cell.settings),
            "result": dict(finished.result),
            "seconds": round(finished.seconds, 3),
            "made_by": dict(finished.made_by),
        }
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")

    def finished(self, cells: Sequence[Cell]) -> list[Finished]:
        """Those of the cells that have been computed, in the order of ``cells``."""
        return [kept for cell in cells if (kept := self.load(cell)) is not None]

    def _path(self, cell: Cell) -> Path:
        return self.folder / cell.file


def _not_finished(path: Path, reason: object) -> DataFileError:
    return DataFileError(f"{path} is not a finished cell ({reason}); delete it to compute it again")


def computed(
    cells: Sequence[Cell],
    compute: Callable[[Settings], Values],
    store: CellStore,
    announce: Callable[[Cell, int, int], None] = lambda cell, number, total: None,
    failed: Callable[[Cell, Exception], None] | None = None,
) -> Iterator[Finished]:
    """All cells, in order: those in the store as they are, the others computed and kept at once.

    ``announce(cell, number, total)`` is called before each computation. A cell that fails, or whose result is not a
    finite number, is told to ``failed`` and left out, to be tried again by the next run; without it the error ends this
    one.
    """
    for number, cell in enumerate(cells, 1):
        kept = store.load(cell)
        if kept is None:
            announce(cell, number, len(cells))
            try:
                kept = _compute(cell, compute)
                store.save(kept)
            except (CertgpError, ValueError, ArithmeticError, RuntimeError) as error:
                if failed is None or isinstance(error, DataFileError):
                    raise
                failed(cell, error)
                continue
        yield kept


def _compute(cell: Cell, compute: Callable[[Settings], Values]) -> Finished:
    started = time.perf_counter()
    result = compute(cell.settings)
    made_by = {"certgp": __version__, "source": source_hash(), "python": platform.python_version()}
    return Finished(cell, result, time.perf_counter() - started, made_by)


@cache
def source_hash() -> str:
    """Twelve digits that change with every change of the package's code: which version made a cell."""
    root = Path(__file__).parents[1]
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def chosen(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Cells whose settings agree with all conditions ``key=value`` or ``key=value,value``."""
    left, used = list(cells), list[str]()
    for condition in only:
        key, separator, values = condition.partition("=")
        if not separator or not values:
            raise InvalidInputError(f"a condition reads key=value or key=value,value; found {condition!r}")
        known = {str(cell.settings[key]): cell.settings[key] for cell in left if key in cell.settings}
        wanted = values.split(",")
        if not set(wanted) <= set(known):
            among = f" among the cells with {' '.join(used)}" if used else ""
            raise InvalidInputError(f"{condition!r} fits no cell{among}{_what_fits(left, key, list(known.values()))}")
        left = [cell for cell in left if key in cell.settings and str(cell.settings[key]) in wanted]
        used.append(condition)
    return left


def _what_fits(cells: Sequence[Cell], key: str, values: Sequence[Scalar]) -> str:
    """The values that a setting has, or which settings there are."""
    if not values:
        return f"; settings are {', '.join(sorted({name for cell in cells for name in cell.settings}))}"
    numbers = sorted(value for value in values if isinstance(value, (int, float)))
    texts = sorted(str(value) for value in values if not isinstance(value, (int, float)))
    return f": {key} has the values {', '.join(map(str, [*numbers, *texts]))}"
