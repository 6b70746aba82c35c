"""A table on its way to rows: surveyed, learned from and encoded, or checked against an encoding and encoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.data.files import Keeping
from certgp.data.store import StoredRows
from certgp.errors import DataFileError, TableProblemsError
from certgp.tabular.columns import Column, MeanColumn, MomentColumn
from certgp.tabular.encoding import Encoding, TableOptions
from certgp.tabular.learning import FOLDS, Learned, Training, learn_encoding
from certgp.tabular.parsing import gaps_in, levels_of, moments_of, numbers_of
from certgp.tabular.row_labels import notes_of_counting
from certgp.tabular.source import FileTable, RawPart, RawTable
from certgp.tabular.survey import (
    ColumnSurvey,
    called,
    option,
    problem_of_gaps,
    problem_of_input,
    problem_of_target,
    survey_columns,
)

Array = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are for what."""

    inputs: tuple[str, ...]
    targets: tuple[str, ...] = ()
    weights: str | None = None
    group: str | None = None  # rows of one group are held out together
    time: str | None = None  # the latest rows are held out

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are no inputs, or not only."""
        given = (*self.targets, self.weights, self.group, self.time)
        return tuple(dict.fromkeys(name for name in given if name is not None))


@dataclass(frozen=True, eq=False)
class SurveyedTable:
    """A table that can be used: what its columns are, its targets, and which rows are whole."""

    table: RawTable
    roles: Roles
    options: TableOptions
    surveys: Mapping[str, ColumnSurvey]  # of the inputs
    others: Mapping[str, Array] = field(repr=False)  # targets, weights, groups and times (n,) of all rows
    usable: Positions = field(repr=False)  # rows to use, among all that could be read

    @staticmethod
    def of(table: RawTable, roles: Roles, options: TableOptions, skips: bool = False) -> SurveyedTable:
        """One pass over all rows; every problem of every column is told at once. With ``skips`` rows that lack a number
        are left out instead.
        """
        names = tuple(dict.fromkeys((*roles.inputs, *roles.others)))
        problems: list[str | None] = []
        try:
            surveys, n, kept = _survey(table, names, roles, options)
        except DataFileError as error:
            if not isinstance(table, FileTable) or table.files.skipped is not None:
                raise
            table = table.without_damage()  # what is wrong with the rest is told with it
            surveys, n, kept = _survey(table, names, roles, options)
            if n == 0:
                raise
            problems = [str(error), *table.further_damage()]
        if n == 0:
            raise TableProblemsError([f"{table.title} has no rows; at least one is needed"])
        asked = [name for name in roles.inputs if name in options.keep or not surveys[name].is_identifier]
        problems += [problem_of_input(surveys[name], table, not options.imputes, skips) for name in asked]
        problems += _problems_of_others(surveys, table, roles, options, skips)
        told = [problem for problem in dict.fromkeys(problems) if problem is not None]
        if told:
            raise TableProblemsError(told)
        others = {name: _values_of(surveys[name], kept[name], name == roles.group) for name in roles.others}
        usable = _usable_rows(n, [surveys[name] for name in asked], roles, others, options) if skips else np.arange(n)
        if isinstance(table, FileTable):
            table.count_left_out(np.setdiff1d(np.arange(n), usable, assume_unique=True))
        if not len(usable):
            raise TableProblemsError([f"{table.title} has no row without a gap; at least one is needed"])
        inputs = {name: _as_numbers_where_mostly(surveys[name]) for name in roles.inputs}
        return SurveyedTable(table, roles, options, inputs, others, usable)

    @property
    def n_rows(self) -> int:
        """Number of rows to use."""
        return len(self.usable)

    def notes(self) -> list[str]:
        """What a user may want to know of columns that are used as they are."""
        return notes_of_counting(self.surveys.values(), self.table)

    def values(self, name: str) -> Array:
        """A target, the weights, groups or times of the rows to use (n,)."""
        return self.others[name][self.usable]

    def targets(self) -> Array | None:
        """As the model learns them (n, q)."""
        if not self.roles.targets:
            return None
        y = np.stack([self.values(name) for name in self.roles.targets], 1)
        return np.log(y) if self.options.log_target else y

    def learn(self, train: Positions, targets: Array | None = None) -> tuple[Learned, Training]:
        """What is done to each column, from these of the rows to use. ``targets`` (n, q) are those of all rows to use
        where the table does not hold them.
        """
        n = int(self.usable[-1]) + 1
        is_training, folds = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        is_training[self.usable[train]] = True
        folds[self.usable[train]] = self._folds(train)
        found, placed = self.targets() if targets is None else targets, None
        if found is not None:
            placed = np.zeros((n, found.shape[1]))
            placed[self.usable] = found
        training = Training(is_training, placed, folds)
        learned = learn_encoding(self.table, self.surveys, training, self.options)
        return replace(learned, encoding=replace(learned.encoding, targets=self.roles.targets)), training

    def _folds(self, train: Positions) -> Positions:
        """A fold for each training row; rows of one group share it."""
        rng = np.random.default_rng(self.options.seed)
        if self.roles.group is None:
            return rng.permutation(len(train)) % FOLDS
        codes, numbers = np.unique(self.values(self.roles.group)[train], return_inverse=True)
        return np.asarray((rng.permutation(len(codes)) % FOLDS)[numbers])

    def rows(self, learned: Learned, training: Training, keeping: Keeping) -> StoredRows:
        """All rows to use as numbers, in memory or a scratch file; training rows get means of other folds."""
        names, targets, weight = learned.encoding.names, self.targets(), self.roles.weights
        q = 0 if targets is None else targets.shape[1]
        store = keeping.store(len(names) + q + (weight is not None), np.dtype(np.float64))
        done = 0
        for part in self.table.parts(learned.encoding.inputs):
            here = self.usable[(self.usable >= part.start) & (self.usable < part.start + len(part))]
            if not len(here):
                continue
            columns = {name: values.take(pa.array(here - part.start)) for name, values in part.columns.items()}
            X = learned.encode(columns, training.folds[here], training.is_training[here], self.table.text.decimal)
            extra = [] if targets is None else [targets[done : done + len(here)]]
            extra += [] if weight is None else [self.values(weight)[done : done + len(here), None]]
            store.append(np.concatenate([X, *extra], 1))
            done += len(here)
        width = len(names)
        target = None if q == 0 else width if q == 1 else tuple(range(width, width + q))
        return StoredRows(store.numbers(), width, names, target=target, weight=None if weight is None else width + q)


def _survey(
    table: RawTable, names: tuple[str, ...], roles: Roles, options: TableOptions
) -> tuple[dict[str, ColumnSurvey], int, dict[str, list[pa.Array]]]:
    kept: dict[str, list[pa.Array]] = {name: [] for name in roles.others}

    def keep(part: RawPart) -> None:
        for name, values in kept.items():
            values.append(part.columns[name])

    categories = {*options.categories, *([] if roles.group is None else [roles.group])}
    return *survey_columns(table, names, categories, keep), kept


def _problems_of_others(
    surveys: Mapping[str, ColumnSurvey], table: RawTable, roles: Roles, options: TableOptions, skips: bool
) -> list[str | None]:
    found = [problem_of_target(surveys[name], table, skips, options.log_target) for name in roles.targets]
    if roles.weights is not None:
        found.append(problem_of_target(surveys[roles.weights], table, skips, False))
    splitting = [surveys[name] for name in (roles.group, roles.time) if name is not None and not skips]
    found += [problem_of_gaps(each, table, "fill them or leave") for each in splitting if each.gaps]
    if roles.time is not None and surveys[roles.time].what not in ("number", "moment"):
        found.append(f"{called(roles.time, table)} of --time-split holds neither dates nor numbers; name another")
    return found


def _values_of(survey: ColumnSurvey, parts: list[pa.Array], is_group: bool) -> Array:
    """Numbers (n,): of a group its code, of a moment its seconds."""
    if is_group:
        levels = pa.chunked_array([levels_of(part) for part in parts], pa.string()).combine_chunks()
        return np.asarray(levels.dictionary_encode().indices.to_numpy(zero_copy_only=False), dtype=np.float64)
    if survey.what == "moment":
        return np.concatenate([moments_of(part, survey.form) for part in parts])
    return np.concatenate([numbers_of(part, survey.decimal) for part in parts])


def _usable_rows(
    n: int, surveys: Sequence[ColumnSurvey], roles: Roles, others: Mapping[str, Array], options: TableOptions
) -> Positions:
    """Rows without the ones that lack a number where one is needed."""
    usable = np.ones(n, dtype=bool)
    for values in others.values():
        usable &= np.isfinite(values)
    if options.log_target:
        for name in roles.targets:
            usable &= others[name] > 0.0
    for survey in surveys:
        for rows in survey.other_rows + (survey.word_rows if survey.what == "mixed" else []):
            usable[rows] = False
        if not options.imputes and survey.what != "empty":
            for rows in survey.gap_rows:
                usable[rows] = False
    return np.flatnonzero(usable)


def _as_numbers_where_mostly(survey: ColumnSurvey) -> ColumnSurvey:
    """A column of numbers whose rows with words are left out is one of numbers."""
    return replace(survey, words=0) if survey.what == "mixed" else survey


# -------------------- other tables


@dataclass
class _Found:
    """What a pass finds wrong with one column."""

    gaps: int = 0
    first_gap: int | None = None
    words: int = 0
    first_word: tuple[int, str] | None = None
    unknown: int = 0

    @property
    def first_bad(self) -> int:
        """The row that a message about the column names."""
        row = self.first_gap if self.first_word is None else self.first_word[0]
        assert row is not None
        return row


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table that an encoding fits, all rows looked at."""

    table: RawTable
    encoding: Encoding
    usable: Positions = field(repr=False)  # among the rows that could be read
    unknown: Mapping[str, int]  # levels that no training row had, by column
    filled: Mapping[str, int]  # gaps that are filled in, by column
    unflagged: tuple[str, ...]  # of these, columns that had none in the training rows

    @staticmethod
    def of(table: RawTable, encoding: Encoding, skips: bool = False) -> CheckedTable:
        """One pass; every problem of every column is told at once, or rows with problems are left out."""
        encoding.require(table.names, table.title)
        found = {name: _Found() for name in encoding.inputs}
        usable: list[NDArray[np.bool_]] = []
        for part in table.parts(encoding.inputs):
            whole = np.ones(len(part), dtype=bool)
            for column in encoding.columns:
                whole &= _look(
                    found[column.name], column.encode(part.columns[column.name], table.text.decimal), part, column.name
                )
                found[column.name].unknown += column.count_unknown(part.columns[column.name])
            usable.append(whole)
        if not usable:
            raise TableProblemsError([f"{table.title} has no rows; at least one is needed"])
        problems = {} if skips else {c.name: _told(c, found[c.name], table, encoding.imputes) for c in encoding.columns}
        told = {name: problem for name, problem in problems.items() if problem is not None}
        if told:
            name = next(iter(told))
            raise TableProblemsError(list(told.values()), (name, found[name].first_bad))
        whole = np.concatenate(usable)
        rows = np.flatnonzero(whole)
        if isinstance(table, FileTable):
            table.count_left_out(np.flatnonzero(~whole))
        filled = {name: each.gaps for name, each in found.items() if each.gaps and encoding.imputes}
        flagged = {
            c.name
            for c in encoding.columns
            if f"{c.name} missing" in c.outputs or (isinstance(c, MeanColumn) and c.gap)
        }
        unknown = {name: each.unknown for name, each in found.items() if each.unknown}
        return CheckedTable(
            table, encoding, rows, unknown, filled, tuple(name for name in filled if name not in flagged)
        )

    def parts(self) -> Iterator[tuple[Positions, Array]]:
        """Numbers of rows in the table, and the rows as numbers (n, D), some at a time."""
        for part in self.table.parts(self.encoding.inputs):
            here = self.usable[(self.usable >= part.start) & (self.usable < part.start + len(part))] - part.start
            if len(here):
                columns = {name: values.take(pa.array(here)) for name, values in part.columns.items()}
                yield part.rows[here], self.encoding.encode(columns, self.table.text.decimal)

    def numbers(self) -> Array:
        """All rows as numbers (n, D)."""
        return np.concatenate([part for _, part in self.parts()])

    def chunks(self, rows: int) -> Iterator[tuple[Positions, Array]]:
        """The same, ``rows`` at a time, the last time fewer."""
        yield from in_chunks(self.parts(), rows)

    def target_chunks(self, rows: int) -> Iterator[tuple[Positions, Array]]:
        """Targets (n, q) of the same rows in their own units, in the same chunks; NaN for what is no number."""
        yield from in_chunks(self._targets(), rows)

    def _targets(self) -> Iterator[tuple[Positions, Array]]:
        names, decimal = self.encoding.targets, self.table.text.decimal
        for part in self.table.parts(names):
            here = self.usable[(self.usable >= part.start) & (self.usable < part.start + len(part))] - part.start
            if len(here):
                yield part.rows[here], np.stack([numbers_of(part.columns[name], decimal)[here] for name in names], 1)

    def notes(self) -> list[str]:
        """What was done that a user should know."""
        told = [
            f"column {name!r}: {count:,} value(s) are levels that no training row has; they count as an average row"
            for name, count in self.unknown.items()
        ]
        for name, count in self.filled.items():
            own = " (its training rows had none, so nothing was learned about them)" if name in self.unflagged else ""
            told.append(f"column {name!r}: {count:,} gap(s) were filled in as in the fit{own}")
        return told


def in_chunks(parts: Iterator[tuple[Positions, Array]], rows: int) -> Iterator[tuple[Positions, Array]]:
    """Parts of any sizes as parts of one size."""
    numbers: list[Positions] = []
    values: list[Array] = []
    held = 0
    for more, X in parts:
        numbers.append(more)
        values.append(X)
        held += len(X)
        while held >= rows:
            joined, rest = np.concatenate(numbers), np.concatenate(values)
            yield joined[:rows], rest[:rows]
            numbers, values, held = [joined[rows:]], [rest[rows:]], held - rows
    if held:
        yield np.concatenate(numbers), np.concatenate(values)


def _look(found: _Found, X: Array, part: RawPart, name: str) -> NDArray[np.bool_]:
    """Count gaps, and what is neither gap nor readable; which rows can be used (n,)."""
    values = part.columns[name]
    gaps, good = gaps_in(values), np.asarray(np.isfinite(X).all(1))
    words = ~good & ~gaps
    if gaps.any():
        found.gaps += int(gaps.sum())
        found.first_gap = int(part.rows[gaps.argmax()]) if found.first_gap is None else found.first_gap
    if words.any():
        at = int(words.argmax())
        found.words += int(words.sum())
        found.first_word = found.first_word or (int(part.rows[at]), str(values[at].as_py()))
    return good


def _told(column: Column, found: _Found, table: RawTable, imputes: bool) -> str | None:
    """What is wrong with a column, and what to do; None where nothing is."""
    name = column.name
    if found.first_word is not None:
        row, word = found.first_word
        what = {"truth": "true or false"}.get(column.kind, "number")
        if isinstance(column, MomentColumn):
            what = f"date or time as in the fit (such as {column.example()})"
        rest = "" if found.words == 1 else f", and {found.words - 1:,} more"
        return f"{called(name, table)}: {table.place(row)} holds {word[:40]!r}{rest}, which is no {what}; correct it"
    if found.first_gap is not None and not imputes:
        gaps = ColumnSurvey(name, table.text.decimal, gaps=found.gaps, first_gap=found.first_gap)
        return problem_of_gaps(
            gaps, table, f"fill them (a fit with {option(table, 'missing', 'impute')} would do so), or leave"
        )
    return None
