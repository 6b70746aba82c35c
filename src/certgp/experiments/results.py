"""Results that ``certgp reproduce`` has written, and questions about their rows that survive missing columns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from certgp.errors import DataFileError
from certgp.experiments.experiment import Row


@dataclass(frozen=True)
class Result:
    """NAME.json: a title and rows."""

    title: str
    rows: Sequence[Row]


Results = Mapping[str, Result]


def read_results(folder: Path) -> dict[str, Result]:
    """All NAME.json of a folder, by name; a folder that is not there has none."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.json"))}


def _read(path: Path) -> Result:
    try:
        content = json.loads(path.read_text())
        title, rows = str(content["title"]), content["rows"]
        if not all(isinstance(row, dict) for row in rows):
            raise TypeError("a row is not an object")
    except (ValueError, KeyError, TypeError) as error:
        raise DataFileError(f"{path} holds no results of 'certgp reproduce' ({error}); write it again") from error
    return Result(title, rows)


def rows_of(results: Results, name: str) -> Sequence[Row]:
    """Rows of an experiment; none where it has not been run."""
    return results[name].rows if name in results else ()


def number(row: Row, *keys: str) -> float | None:
    """The first of these columns that has a finite number."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def chosen_rows(rows: Iterable[Row], **conditions: object) -> list[Row]:
    """Rows that have these values in these columns."""
    return [row for row in rows if all(row.get(key) == value for key, value in conditions.items())]


def paired(
    rows: Iterable[Row], shared: Sequence[str], first: Callable[[Row], bool], second: Callable[[Row], bool]
) -> list[tuple[Row, Row]]:
    """Rows of the first kind with the row of the second kind that agrees with it in the shared columns."""
    rows = list(rows)
    partners = {_key(row, shared): row for row in rows if second(row)}
    return [(row, partners[_key(row, shared)]) for row in rows if first(row) and _key(row, shared) in partners]


def _key(row: Row, columns: Sequence[str]) -> tuple[Hashable, ...]:
    return tuple(row.get(column) for column in columns)


@dataclass(frozen=True)
class Comparison:
    """One of our figures beside the paper's; lower is better."""

    ours: float | None
    ours_sd: float | None
    paper: float | None
    paper_sd: float | None
    stated: bool | None  # the row's own word on "equal or better"
    rounding: float  # half of the last digit that the paper prints

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper

    @property
    def in_sd(self) -> float | None:
        """The difference in the paper's standard deviations over splits, where it prints one above zero."""
        return self.difference / self.paper_sd if self.difference is not None and self.paper_sd else None

    @property
    def equal_or_better(self) -> bool | None:
        """Not larger than the paper's figure at the precision of its print."""
        if self.difference is None:
            return None
        return self.stated if self.stated is not None else self.difference <= self.rounding


def linear_comparison(row: Row) -> Comparison:
    """A cell of the linear tables, which the paper prints with two digits."""
    flag = row.get("equal_or_better")
    stated = flag if isinstance(flag, bool) else None
    ours, ours_sd, paper, paper_sd = (number(row, key) for key in ("mean", "sd", "paper_mean", "paper_sd"))
    return Comparison(ours, ours_sd, paper, paper_sd, stated, rounding=0.005)


def metric_comparison(row: Row, metric: str) -> Comparison:
    """A metric of the deep tables, which the paper prints with three digits (seconds: none)."""
    flags = (row.get(key) for key in (f"{metric}_equal_or_better", *(["equal_or_better"] if metric == "nlpd" else [])))
    stated = next((flag for flag in flags if isinstance(flag, bool)), None)
    ours, ours_sd = number(row, metric), number(row, f"{metric}_sd")
    paper, paper_sd = number(row, f"paper_{metric}"), number(row, f"paper_{metric}_sd")
    return Comparison(ours, ours_sd, paper, paper_sd, stated, rounding=0.5 if metric == "seconds" else 5e-4)
