"""What is done to a column: how its values become numbers, in words and in a file.

Every kind of column is fixed by the training rows and then the same for all rows. ``encode`` maps an Arrow array (n,)
to numbers (n, k), k the number of its ``outputs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certgp.errors import ModelFileError
from certgp.tabular.parsing import CLOCK, ISO, gaps_in, levels_of, moments_of, numbers_of, truths_of
from certgp.tabular.settings import Setting, set_circle, set_levels

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
DAY, WEEK, YEAR = 86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0
_MONDAY = 4 * DAY  # 1970-01-05
PERIODS = {"season": YEAR, "weekday": WEEK, "time of day": DAY}
UNKNOWN = -1  # code of a level that no training row has
_SHOWN = 6  # levels named in words


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table as numbers."""

    name: str
    kind: ClassVar[str]

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""

    @abstractmethod
    def encode(self, values: pa.Array, decimal: str) -> Array:
        """Values (n,) as numbers (n, k); gaps are filled in, what cannot be read is NaN."""

    @abstractmethod
    def words(self) -> str:
        """What was done, for people."""

    def count_unknown(self, values: pa.Array) -> int:
        """How many values are levels that no training row has."""
        return 0

    def settings(self) -> tuple[Setting, ...]:
        """What it can be set to, to see what it does."""
        return (Setting(self.outputs[0]),)

    def describe(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"kind": self.kind} | asdict(self)


@dataclass(frozen=True)
class Filling:
    """What stands in for gaps: a value of the training rows, and a column that tells where they were."""

    value: float | None = None  # None: gaps are refused
    flagged: bool = False  # did training rows have gaps, so that a further column says where?

    def outputs(self, name: str) -> tuple[str, ...]:
        """Name of the further column, where there is one."""
        return (f"{name} missing",) if self.flagged else ()

    def flags(self, values: pa.Array) -> Array:
        """1 where a gap is, (n, 1), or (n, 0) without that column."""
        return gaps_in(values).astype(np.float64)[:, None] if self.flagged else np.empty((len(values), 0))

    def fill(self, numbers: Array, values: pa.Array) -> Array:
        """Gaps filled in; what is no gap and no number stays NaN."""
        return numbers if self.value is None else np.where(gaps_in(values), self.value, numbers)

    def words(self, called: str) -> str:
        """What happens to gaps, where the training rows had any."""
        return f"; gaps become {called}, with a column that says where" if self.flagged else ""


@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers, taken as they are."""

    filling: Filling = field(default_factory=Filling)
    kind: ClassVar[str] = "number"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.name, *self.filling.outputs(self.name))

    def encode(self, values: pa.Array, decimal: str) -> Array:
        found = self.filling.fill(numbers_of(values, decimal), values)
        return np.concatenate([found[:, None], self.filling.flags(values)], 1)

    def words(self) -> str:
        value = self.filling.value
        return "numbers as they are" + self.filling.words("" if value is None else f"{value:.4g}, the median")


@dataclass(frozen=True)
class TruthColumn(Column):
    """True and false, yes and no: 1 and 0."""

    filling: Filling = field(default_factory=Filling)
    kind: ClassVar[str] = "truth"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.name, *self.filling.outputs(self.name))

    def encode(self, values: pa.Array, decimal: str) -> Array:
        found = self.filling.fill(truths_of(values), values)
        return np.concatenate([found[:, None], self.filling.flags(values)], 1)

    def settings(self) -> tuple[Setting, ...]:
        return (set_levels(self.name, ("false", "true"), np.array([[0.0], [1.0]])),)

    def words(self) -> str:
        share = "" if self.filling.value is None else f"{self.filling.value:.2g}, the share of true"
        return "true is 1, false 0" + self.filling.words(share)


@dataclass(frozen=True)
class MomentColumn(Column):
    """Dates and times: a trend in years since the first training row, and circles for season, weekday, time of day.

    The circle of a period P is sin(2 pi t / P), cos(2 pi t / P), so that its end meets its beginning.
    """

    parts: tuple[str, ...]  # of "trend", "season", "weekday", "time of day"
    origin: float  # seconds: the first training row
    form: str | None  # how texts are written
    filling: Filling = field(default_factory=Filling)
    kind: ClassVar[str] = "moment"

    @property
    def outputs(self) -> tuple[str, ...]:
        found: list[str] = []
        for part in self.parts:
            found += [f"{self.name} trend"] if part == "trend" else [f"{self.name} {part} {f}" for f in ("sin", "cos")]
        return (*found, *self.filling.outputs(self.name))

    def encode(self, values: pa.Array, decimal: str) -> Array:
        t = self.filling.fill(moments_of(values, self.form), values)
        found = []
        for part in self.parts:
            if part == "trend":
                found.append((t - self.origin) / YEAR)
                continue
            angle = 2.0 * np.pi * _phase(t, part)
            found += [np.sin(angle), np.cos(angle)]
        return np.concatenate([np.stack(found, 1), self.filling.flags(values)], 1)

    def settings(self) -> tuple[Setting, ...]:
        trend = (Setting(f"{self.name}, years since the first"),) if "trend" in self.parts else ()
        circles = [part for part in self.parts if part != "trend"]
        return (*trend, *(set_circle(self.name, part, len(trend) + 2 * k) for k, part in enumerate(circles)))

    @property
    def is_plain_date(self) -> bool:
        """Are these days, written as 2024-12-31?"""
        return self.form in (None, ISO) and "time of day" not in self.parts

    def example(self) -> str:
        """The first training moment, written as in the fit."""
        first = datetime(1970, 1, 1) + timedelta(seconds=self.origin)
        usual = "%Y-%m-%d" if self.is_plain_date else "%Y-%m-%d %H:%M:%S"
        return first.strftime(usual if self.form in (None, ISO) else self.form)

    def words(self) -> str:
        circles = [part for part in self.parts if part != "trend"]
        said = ["trend (years)"] if "trend" in self.parts else []
        said += [f"{', '.join(circles)} as sine and cosine"] if circles else []
        what = "time of day" if self.form == CLOCK else "date"
        value = self.filling.value
        return f"{what}: {', '.join(said)}" + self.filling.words("" if value is None else "the median moment")


def _phase(t: Array, part: str) -> Array:
    """Where in its period a moment is, from 0 to 1. A season is counted from the first of January of its own year."""
    if part == "weekday":
        return np.floor(((t - _MONDAY) % WEEK) / DAY) / 7.0
    if part == "season":
        known = np.isfinite(t)
        moments = np.where(known, t, 0.0).astype("datetime64[s]")
        years = moments.astype("datetime64[Y]")
        begin, end = (each.astype("datetime64[s]").astype(np.float64) for each in (years, years + 1))
        return np.where(known, (t - begin) / (end - begin), np.nan)
    return (t % DAY) / DAY


@dataclass(frozen=True)
class LevelColumn(Column):
    """A few levels: a column of 0 and 1 for each; of two levels one column will do.

    A level that no training row has counts as the average training row: the shares of all levels.
    """

    levels: tuple[str, ...]
    shares: tuple[float, ...]  # of the training rows, of sum one but for gaps
    has_gaps: bool  # is a gap a level of its own?
    takes_gaps: bool  # or an average row
    kind: ClassVar[str] = "levels"

    @property
    def outputs(self) -> tuple[str, ...]:
        shown = self.levels if len(self.levels) != 2 else self.levels[1:]
        return (*(f"{self.name}={level}" for level in shown), *((f"{self.name} missing",) if self.has_gaps else ()))

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.levels, pa.string())

    def encode(self, values: pa.Array, decimal: str) -> Array:
        gaps, codes = gaps_in(values), _codes(values, self._value_set)
        hot = np.zeros((len(codes), len(self.levels)))
        known = codes != UNKNOWN
        hot[np.flatnonzero(known), codes[known]] = 1.0
        hot[~known] = self.shares
        if not self.takes_gaps:
            hot[gaps] = np.nan
        shown = hot if len(self.levels) != 2 else hot[:, 1:]
        return np.concatenate([shown, gaps[:, None].astype(float)], 1) if self.has_gaps else shown

    def count_unknown(self, values: pa.Array) -> int:
        return int(((_codes(values, self._value_set) == UNKNOWN) & ~gaps_in(values)).sum())

    def settings(self) -> tuple[Setting, ...]:
        hot = np.eye(len(self.levels))[:, len(self.levels) == 2 :]
        if not self.has_gaps:
            return (set_levels(self.name, self.levels, hot),)
        gap = self.encode(pa.nulls(1, pa.string()), ".")
        numbers = np.concatenate([np.pad(hot, ((0, 0), (0, 1))), gap])
        return (set_levels(self.name, (*self.levels, "missing"), numbers),)

    def words(self) -> str:
        named = ", ".join(self.levels[:_SHOWN]) + (", ..." if len(self.levels) > _SHOWN else "")
        gaps = "; a gap is a level of its own" if self.has_gaps else ""
        if len(self.levels) == 2:
            return f"2 levels: {self.levels[1]} is 1, {self.levels[0]} 0{gaps}"
        return f"{len(self.levels)} levels ({named}), a column of 0 and 1 each{gaps}"


@dataclass(frozen=True)
class MeanColumn(Column):
    """Many levels: the mean target of the training rows of a level, drawn to the mean of all where they are few.

    m_l = m + n_l t2 / (n_l t2 + w) (ybar_l - m), t2 the variance between levels and w that within (the best linear
    prediction of a random effect). A level that no training row has is m. Training rows themselves get the means of the
    other folds, or a model would trust them too much; ``learning.py`` has those.
    """

    levels: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]  # (levels, targets)
    overall: tuple[float, ...]  # (targets,)
    gap: tuple[float, ...] | None  # of gaps, where training rows have any
    takes_gaps: bool
    suffixes: tuple[str, ...] = ("",)  # of the outputs, one for each target
    kind: ClassVar[str] = "means"

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{self.name} (mean target{suffix})" for suffix in self.suffixes)

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.levels, pa.string())

    @cached_property
    def _table(self) -> Array:
        """Means (levels + 2, targets): of the levels, of a gap, of an unknown level."""
        gap = self.gap if self.gap is not None else self.overall if self.takes_gaps else [np.nan] * len(self.overall)
        return np.array([*self.means, gap, self.overall])

    def codes(self, values: pa.Array) -> Codes:
        """Numbers of levels (n,); the one behind the last is a gap, UNKNOWN a level that no training row has."""
        return np.where(gaps_in(values), len(self.levels), _codes(values, self._value_set))

    def encode(self, values: pa.Array, decimal: str) -> Array:
        return np.asarray(self._table[self.codes(values)])

    def count_unknown(self, values: pa.Array) -> int:
        return int((self.codes(values) == UNKNOWN).sum())

    def words(self) -> str:
        gaps = "; a gap is a level of its own" if self.gap is not None else ""
        return (
            f"{len(self.levels):,} levels: the mean target of each, drawn to the mean of all where rows are few "
            f"(training rows: means of other rows){gaps}"
        )


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, and why."""

    name: str
    reason: str


_KINDS: Mapping[str, type[Column]] = {
    each.kind: each for each in (NumberColumn, TruthColumn, MomentColumn, LevelColumn, MeanColumn)
}


def column_from_description(values: Mapping[str, Any]) -> Column:
    """The column that ``describe`` gave."""
    known = _KINDS.get(values["kind"])
    if known is None:
        raise ModelFileError(f"the file holds a column of the kind {values['kind']!r}, which this certgp does not know")
    given = {key: _as_tuples(value) for key, value in values.items() if key != "kind"}
    if "filling" in given:
        given["filling"] = Filling(**given["filling"])
    return known(**given)


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(each) for each in value) if isinstance(value, (list, tuple)) else value


def _codes(values: pa.Array, levels: pa.Array) -> Codes:
    """Numbers of levels (n,), UNKNOWN for all others and for gaps."""
    found = pc.fill_null(pc.index_in(levels_of(values), levels), UNKNOWN)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
