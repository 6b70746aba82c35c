"""How a table becomes numbers: one rule for each column, learned from training rows, repeated on every other table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.checks import check_choice, check_flag
from certgp.data.reading import listed
from certgp.errors import InvalidInputError, TableProblemsError
from certgp.tabular.columns import Column, LeftOut, column_from_description
from certgp.tabular.parsing import TextFormat

Array = NDArray[np.float64]
MISSING = ("refuse", "impute")
DEFAULT_MAX_LEVELS = 10


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a table."""

    missing: str = "refuse"  # what to do with gaps among the inputs: refuse or impute
    log_target: bool = False  # model log(y), for positive targets with a long tail
    categories: tuple[str, ...] = ()  # columns of numbers that are names, such as codes
    keep: tuple[str, ...] = ()  # columns that look like identifiers and are none
    max_levels: int = DEFAULT_MAX_LEVELS  # of a category with a column each; more levels become mean targets
    seed: int = 0  # of the folds of mean targets

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, MISSING)
        check_flag("log_target", self.log_target)
        if (
            isinstance(self.max_levels, bool)
            or not isinstance(self.max_levels, (int, np.integer))
            or self.max_levels < 2
        ):
            raise InvalidInputError(f"max_levels must be a whole number of at least 2, found {self.max_levels!r}")
        for name in ("categories", "keep"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise InvalidInputError(f"{name} must be a list of column names, found {value!r}")

    @property
    def imputes(self) -> bool:
        """Are gaps among the inputs filled in?"""
        return self.missing == "impute"


@dataclass(frozen=True)
class Encoding:
    """What is done to each column of a table, and to its targets."""

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()
    targets: tuple[str, ...] = ()
    log_target: bool = False
    imputes: bool = False
    text: TextFormat = field(default_factory=TextFormat)  # of the files of the fit
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)  # with which it was learned

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns of the table that are used."""
        return tuple(column.name for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that they become."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def is_plain(self) -> bool:
        """Are all columns used as they are?"""
        return not self.left_out and self.names == self.inputs and not self.log_target

    def encode(self, columns: Mapping[str, pa.Array], decimal: str = ".") -> Array:
        """Columns of n rows as numbers (n, D); NaN where a value cannot be used."""
        return np.concatenate([column.encode(columns[column.name], decimal) for column in self.columns], 1)

    def target(self, y: Array) -> Array:
        """Targets as the model learns them."""
        return np.log(y) if self.log_target else y

    def lines(self) -> list[tuple[str, str]]:
        """What was done to each column, for people: names and words."""
        return [
            *((each.name, each.words()) for each in self.columns),
            *((e.name, f"left out: {e.reason}") for e in self.left_out),
        ]

    def require(self, names: Sequence[str], title: str) -> None:
        """Refuse a table that lacks columns, and say which all at once."""
        missing = [name for name in self.inputs if name not in names]
        if missing:
            noun = "there is no column" if len(missing) == 1 else "there are no columns"
            raise TableProblemsError(
                [
                    f"{noun} {listed(missing)} in {title}; the columns are: {listed(tuple(names))}. The model needs "
                    "all columns of its fit but those that were left out"
                ]
            )

    def describe(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "columns": [column.describe() for column in self.columns],
            "left_out": [[each.name, each.reason] for each in self.left_out],
            "targets": list(self.targets),
            "log_target": self.log_target,
            "imputes": self.imputes,
            "text": self.text.describe(),
            "options": dict(self.options),
        }

    @staticmethod
    def from_description(values: Mapping[str, Any]) -> Encoding:
        """The encoding that ``describe`` gave."""
        return Encoding(
            tuple(column_from_description(column) for column in values["columns"]),
            tuple(LeftOut(*each) for each in values["left_out"]),
            tuple(values["targets"]),
            values["log_target"],
            values["imputes"],
            TextFormat(**values["text"]),
            values["options"],
        )
