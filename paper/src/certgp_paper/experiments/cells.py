"""Pieces of an experiment that are computed and kept one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from certgp.errors import DataFileError, InvalidInputError

Scalar = str | int | float | bool | None
Settings = Mapping[str, Scalar]
Values = Mapping[str, Any]  # anything JSON can hold


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

    family: str  # also the name of the file that keeps its cells
    settings: Settings

    @property
    def key(self) -> frozenset[tuple[str, Scalar]]:
        """What tells it from the other cells of its family."""
        return frozenset(self.settings.items())

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.settings.items())


@dataclass(frozen=True)
class Finished:
    """A cell, what came out of it and how long it took."""

    cell: Cell
    result: Values
    seconds: float
    made_by: Values = field(default_factory=dict)  # versions of the cell's code, the package, its source, Python, torch

    def __getitem__(self, key: str) -> Any:
        """A setting or a result by name."""
        if key in self.cell.settings:
            return self.cell.settings[key]
        if key not in self.result:
            where = f"the cell {self.cell} of {self.cell.family}.jsonl"
            raise DataFileError(f"{where} has no {key}; delete its line to compute it again")
        return self.result[key]


def select_cells(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
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
