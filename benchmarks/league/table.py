"""The cells of the league by data set, contestant and split, and means over splits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from league.data import DATA
from league.differences import difference_error
from league.play import FAMILY, FINISHED

Key = tuple[str, str, int]  # data, contestant, split


@dataclass(frozen=True)
class Table:
    """Results of all cells that have been played."""

    cells: Mapping[Key, Mapping[str, Any]]

    @property
    def data(self) -> list[str]:
        """Those with cells, in the order of the league."""
        found = {data for data, _, _ in self.cells}
        return [*(name for name in DATA if name in found), *sorted(found - set(DATA))]

    @property
    def contestants(self) -> list[str]:
        return list(dict.fromkeys(contestant for _, contestant, _ in self.cells))

    def splits(self, data: str, contestant: str) -> list[int]:
        """Splits on which it was played, with success or without."""
        return sorted(split for d, c, split in self.cells if (d, c) == (data, contestant))

    def common_splits(self, data: str, contestants: Sequence[str]) -> list[int]:
        """Splits that all of these were played on."""
        each = [set(self.splits(data, contestant)) for contestant in contestants]
        return sorted(set.intersection(*each)) if each else []

    def value(self, data: str, contestant: str, measure: str, splits: Sequence[int] | None = None) -> float | None:
        """Mean over splits; None where one of them has no such figure, or none was played."""
        chosen = self.splits(data, contestant) if splits is None else splits
        cells = [self.cells.get((data, contestant, split), {}) for split in chosen]
        values = [cell.get(measure) for cell in cells]
        return None if not values or None in values else mean(values)

    def standard_error(self, data: str, contestant: str, measure: str, splits: Sequence[int]) -> float | None:
        """Of the mean over splits, from the standard errors over test rows: sqrt(sum se_s^2) / S."""
        cells = [self.cells.get((data, contestant, split), {}) for split in splits]
        errors = [cell.get(f"{measure}_se") for cell in cells]
        if not errors or None in errors:
            return None
        return math.sqrt(sum(error**2 for error in errors)) / len(errors)

    def difference_error(self, data: str, first: str, second: str, measure: str, splits: Sequence[int]) -> float | None:
        """Standard error of the difference of two means over splits, paired over test rows: sqrt(sum se_s^2) / S.

        None where a cell does not keep what it takes, as those of earlier code.
        """
        errors = []
        for split in splits:
            cells = [self.cells.get((data, name, split), {}) for name in (first, second)]
            if any("parts" not in cell for cell in cells):
                return None
            sums = [cell["parts"][measure] for cell in cells]
            errors.append(difference_error(measure, *sums, cells[0]["test_rows"]))
        return math.sqrt(sum(error**2 for error in errors)) / len(errors) if errors else None

    def about(self, data: str) -> Mapping[str, Any]:
        """Sizes and traps of a data set, from any of its cells."""
        return next(cell for (name, _, _), cell in self.cells.items() if name == data)

    def not_finished(self) -> list[tuple[Key, Mapping[str, Any]]]:
        return [(key, cell) for key, cell in self.cells.items() if cell["status"] != FINISHED]


def read_table(folder: Path) -> Table:
    """From league.jsonl; the last line of a cell counts, and a line that a crash cut off does not."""
    path = folder / f"{FAMILY}.jsonl"
    cells: dict[Key, Mapping[str, Any]] = {}
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        content = json.loads(line)
        settings = content["settings"]
        key = (settings["data"], settings["contestant"], settings["split"])
        cells[key] = content["result"] | {"version": content["made_by"].get("version")}
    return Table(cells)
