"""Results that ``certgp reproduce`` has written, and questions about their rows that survive missing columns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from certgp.errors import DataFileError
from certgp_paper.experiments.cells import Finished
from certgp_paper.experiments.comparison import DEEP_ROUNDING, LINEAR_ROUNDING, Comparison
from certgp_paper.experiments.experiment import Row


@dataclass(frozen=True)
class Result:
    """NAME.json: a title, rows, which versions of the code made them, how far cells moved that were made again, for
    which versions that confirms the others, and how many cells were up to date when it was written.
    """

    title: str
    rows: Sequence[Row]
    made_by: Sequence[Row] = ()
    moved: Row | None = None
    confirmed: Sequence[Row] = ()
    up_to_date: int | None = None  # files from before it was recorded do not say


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
    made_by, moved, confirmed = content.get("made_by", ()), content.get("moved"), content.get("confirmed", ())
    return Result(title, rows, made_by, moved, confirmed, content.get("up_to_date"))


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


def split_column(metric: str, split: int) -> str:
    """Name of the column that holds a metric on one split."""
    return f"{metric}_split_{split}"


def split_columns(cells: Sequence[Finished], metrics: Iterable[str], splits: Iterable[int]) -> dict[str, float | None]:
    """A column for each metric and split, since methods run on different splits can be compared on those they share."""
    found = {int(cell["split"]): cell for cell in cells}
    splits = list(splits)
    return {
        split_column(metric, split): float(found[split][metric]) if split in found else None
        for metric in metrics
        for split in splits
    }


def by_split(row: Row, metric: str) -> dict[int, float]:
    """A metric on the splits that a row has."""
    stem = split_column(metric, 0).removesuffix("0")
    columns = [key for key in row if key.startswith(stem) and key.removeprefix(stem).isdigit()]
    return {int(key.removeprefix(stem)): value for key in columns if (value := number(row, key)) is not None}


def chosen_rows(rows: Iterable[Row], **conditions: object) -> list[Row]:
    """Rows that have these values in these columns."""
    return [row for row in rows if all(row.get(key) == value for key, value in conditions.items())]


def pair_up(
    rows: Iterable[Row], shared: Sequence[str], first: Callable[[Row], bool], second: Callable[[Row], bool]
) -> list[tuple[Row, Row]]:
    """Rows of the first kind with the row of the second kind that agrees with it in the shared columns."""
    rows = list(rows)
    partners = {_key(row, shared): row for row in rows if second(row)}
    return [(row, partners[_key(row, shared)]) for row in rows if first(row) and _key(row, shared) in partners]


def _key(row: Row, columns: Sequence[str]) -> tuple[Hashable, ...]:
    return tuple(row.get(column) for column in columns)


def linear_comparison(row: Row) -> Comparison:
    """A row of the linear tables, which the paper prints with two digits."""
    return _comparison(row, ("mean", "sd", "paper_mean", "paper_sd"), LINEAR_ROUNDING)


def metric_comparison(row: Row, metric: str) -> Comparison:
    """A metric of the deep tables, which the paper prints with three digits (seconds: none)."""
    columns = (metric, f"{metric}_sd", f"paper_{metric}", f"paper_{metric}_sd")
    return _comparison(row, columns, DEEP_ROUNDING[metric])


def _comparison(row: Row, columns: Sequence[str], rounding: float) -> Comparison:
    ours, ours_sd, paper, paper_sd = (number(row, column) for column in columns)
    return Comparison(ours, ours_sd, paper, paper_sd, rounding)
