"""One pass over a table: what each column is, and everything that is wrong with it, before anything long begins."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certgp.tabular.parsing import (
    CLOCK,
    DATE_FORMATS,
    FALSE_WORDS,
    TRUE_WORDS,
    gaps_in,
    is_moment,
    is_numeric,
    is_text,
    levels_of,
    looks_like_clock,
    looks_like_decimal_commas,
    looks_like_numbers,
    moments_of,
    numbers_of,
)
from certgp.tabular.source import RawPart, RawTable

Rows = NDArray[np.int64]
FEW_ROWS_TO_JUDGE = 20  # of fewer nobody can tell an identifier from a category
MOST_LEVELS = 100_000  # of a category, kept with the model
_MOSTLY = 0.5  # of the values of a column that are numbers: the others are mistakes
_MOST_DISTINCT = 1_000_000  # whole numbers among which repeated ones are looked for
_ID_NAME = re.compile(r"(^|[\W_])(id|ids|uuid|guid|key|index|idx|rownum|row|nr|no)$|^unnamed\W*\d*$|^$", re.IGNORECASE)
_ID_CAMEL = re.compile(r"[a-z](Id|ID|Key|Nr|No)$")


@dataclass
class ColumnSurvey:
    """What is known of one column; ``add`` takes in more rows."""

    name: str
    decimal: str
    is_category: bool = False  # by the user's word
    n: int = 0
    gaps: int = 0
    first_gap: int | None = None  # row
    gap_rows: list[Rows] = field(default_factory=list)
    type: pa.DataType | None = None
    numbers: int = 0  # and texts that are some
    words: int = 0  # texts that are none
    comma_numbers: int = 0
    word_rows: list[Rows] = field(default_factory=list)  # while there may be numbers too
    first_word: tuple[int, str] | None = None
    first_other: tuple[int, pa.DataType] | None = None  # where a file has values of another kind than those before
    other_rows: list[Rows] = field(default_factory=list)
    forms: tuple[str, ...] = DATE_FORMATS  # of dates, which all texts so far fit
    clocks: int = 0
    levels: set[str] = field(default_factory=set)
    least: float = np.inf
    largest: float = -np.inf
    is_whole: bool = True
    increases: bool = True
    values: list[NDArray[np.float64]] = field(default_factory=list)  # whole numbers, while they are not too many

    def add(self, part: RawPart) -> None:
        """Further rows."""
        values, rows = part.columns[self.name], part.rows
        missing = gaps_in(values)
        self.n += len(values)
        if missing.any():
            self.gaps += int(missing.sum())
            self.gap_rows.append(part.start + np.flatnonzero(missing))
            self.first_gap = int(rows[missing.argmax()]) if self.first_gap is None else self.first_gap
        if self._is_other(values.type) and not missing.all():
            self.first_other = self.first_other or (int(rows[(~missing).argmax()]), values.type)
            self.other_rows.append(part.start + np.flatnonzero(~missing))
            return
        if self.type is None or pa.types.is_null(self.type) or (is_text(values.type) and not missing.all()):
            self.type = values.type  # one file may hold texts where others hold numbers
        if is_numeric(values.type) and not missing.all():
            self.numbers, self.forms = self.numbers + int((~missing).sum()), ()
        if is_text(values.type):
            self._add_texts(values, missing, part)
        if self.is_category or is_text(values.type):
            self._add_levels(values)
        if not self.is_category and (is_numeric(values.type) or (is_text(values.type) and self.numbers > self.words)):
            self._add_numbers(numbers_of(values, self.decimal))
        elif not self.is_category and is_moment(values.type):
            self._add_range(moments_of(values, None))

    def _is_other(self, kind: pa.DataType) -> bool:
        """Dates in one file where others hold numbers or texts, or the reverse; texts may be numbers."""
        return self.type is not None and not pa.types.is_null(self.type) and _is_plain(self.type) != _is_plain(kind)

    def _add_texts(self, texts: pa.Array, missing: NDArray[np.bool_], part: RawPart) -> None:
        good = looks_like_numbers(texts, self.decimal)
        bad = ~good & ~missing
        self.numbers += int(good.sum())
        self.words += int(bad.sum())
        if bad.any():
            self.comma_numbers += int((looks_like_decimal_commas(texts) & bad).sum())
            at = int(bad.argmax())
            self.first_word = self.first_word or (int(part.rows[at]), texts[at].as_py())
            if self.numbers:
                self.word_rows.append(part.start + np.flatnonzero(bad))
        present = texts.filter(pa.array(~missing))
        self.clocks += int(looks_like_clock(present).sum())
        if self.forms and len(present):
            some = present.slice(0, 50)  # most formats end here
            likely = [form for form in self.forms if np.isfinite(moments_of(some, form)).all()]
            self.forms = tuple(form for form in likely if np.isfinite(moments_of(present, form)).all())

    def _add_levels(self, values: pa.Array) -> None:
        if len(self.levels) <= MOST_LEVELS:
            self.levels.update(text for text in pc.unique(levels_of(values)).to_pylist() if text is not None)

    def _add_numbers(self, found: NDArray[np.float64]) -> None:
        known = found[np.isfinite(found)]
        if not len(known):
            return
        self.increases = self.increases and bool(known[0] > self.largest and (np.diff(known) > 0).all())
        self.is_whole = self.is_whole and bool((known == np.round(known)).all())
        self._add_range(known)
        if self.is_whole and sum(map(len, self.values)) < _MOST_DISTINCT:
            self.values.append(known)

    def _add_range(self, found: NDArray[np.float64]) -> None:
        known = found[np.isfinite(found)]
        if len(known):
            self.least, self.largest = min(self.least, float(known.min())), max(self.largest, float(known.max()))

    # -------------------- what it is

    @property
    def present(self) -> int:
        """Number of values that are no gaps."""
        return self.n - self.gaps

    @property
    def what(self) -> str:
        """number, truth, moment, category, empty, mixed (numbers and words), or unreadable."""
        kind = self.type
        if self.present == 0 or kind is None:
            return "empty"
        if self.is_category:
            return "category"
        if is_text(kind):
            return self._what_texts()
        if pa.types.is_boolean(kind):
            return "truth"
        if is_numeric(kind) or pa.types.is_duration(kind):
            return "number"
        return "moment" if is_moment(kind) else "unreadable"

    def _what_texts(self) -> str:
        if not self.words:
            return "number"
        if self.numbers >= _MOSTLY * self.present or self.comma_numbers == self.words:
            return "mixed"
        if self.forms or self.clocks == self.present:
            return "moment"
        lower = {level.lower() for level in self.levels}
        return "truth" if lower <= {*TRUE_WORDS, *FALSE_WORDS} and len(lower) == 2 else "category"

    @property
    def form(self) -> str | None:
        """How dates are written; None where they are no texts."""
        if self.type is None or not is_text(self.type):
            return None if self.type is None or not pa.types.is_time(self.type) else CLOCK
        return self.forms[0] if self.forms else CLOCK

    @property
    def is_ambiguous(self) -> bool:
        """Can its dates be read in more than one way, as 3/4/2024?"""
        return self.type is not None and is_text(self.type) and len({_order(form) for form in self.forms}) > 1

    @property
    def is_row_number(self) -> bool:
        """Is it a whole number that no two rows share?"""
        if self.what != "number" or not self.is_whole or self.gaps or self.n < FEW_ROWS_TO_JUDGE:
            return False
        known = sum(map(len, self.values))
        return self.increases or (known == self.n and len(np.unique(np.concatenate(self.values))) == known)

    @property
    def is_consecutive(self) -> bool:
        """Are these all whole numbers from one to another?"""
        return self.is_row_number and self.largest - self.least + 1 == self.n

    @property
    def is_identifier(self) -> bool:
        """Does it name rows instead of describing them?"""
        if self.what == "category" and not self.is_category:
            return self.present >= FEW_ROWS_TO_JUDGE and 2 * len(self.levels) > self.present
        named = _ID_NAME.search(self.name) or _ID_CAMEL.search(self.name)
        return named is not None and self.is_row_number

    def why_left_out(self) -> str:
        """Why an identifier is not used."""
        if self.what == "number":
            return f"an identifier: no two of {self.n:,} rows share a number"
        most = "more than " if len(self.levels) > MOST_LEVELS else ""
        return f"identifiers or free text: {most}{len(self.levels):,} different texts in {self.present:,} rows"


# -------------------- what is wrong


def called(name: str, table: RawTable) -> str:
    """How a message about a column begins."""
    return f"column {name!r} of {table.title}"


def option(table: RawTable, name: str, value: str) -> str:
    """How to say something about a column, on the command line or in Python."""
    return f"--{name.replace('_', '-')} {shlex.quote(value)}" if table.of_files else f"{name}={value!r}"


def drop(name: str, table: RawTable) -> str:
    """How to leave a column out."""
    return option(table, "drop", name) if table.of_files else f"drop=[{name!r}]"


def problem_of_input(found: ColumnSurvey, table: RawTable, refuses_gaps: bool, skips: bool) -> str | None:
    """What is wrong with an input column, and what to do; None where nothing is."""
    start, what = called(found.name, table), found.what
    if found.first_other is not None and not skips:
        return problem_of_types(found, table)
    if what == "unreadable":
        remedy = drop(found.name, table)
        return f"{start} holds {found.type}, which is neither number, text nor date; leave it out ({remedy})"
    gaps = found.gaps > 0 and refuses_gaps and not skips
    if what == "mixed" and not skips:
        fills = option(table, "missing", "impute")
        also = f"; it also has {found.gaps:,} gap(s) ({fills} fills them in)" if gaps else ""
        return problem_of_words(found, table) + also
    if what == "moment" and found.is_ambiguous:
        return (
            f"{start} holds dates that can be read in more than one way ({found.forms[0]} or {found.forms[1]}); write "
            f"them as 2024-12-31, or leave it out ({drop(found.name, table)})"
        )
    if gaps and what != "empty":
        return problem_of_gaps(found, table, f"fill them in ({option(table, 'missing', 'impute')}), or leave")
    return None


def problem_of_words(found: ColumnSurvey, table: RawTable, is_target: bool = False) -> str:
    """Numbers with words among them."""
    assert found.first_word is not None
    row, word = found.first_word
    begin = f"{called(found.name, table)} is not numeric: {table.place(row)} holds {word[:40]!r}"
    if found.comma_numbers == found.words:
        remedy = "need --decimal ," if table.of_files else "are texts here; read the table with decimal=','"
        return f"{begin}; numbers with decimal commas {remedy}"
    rest = "" if found.words == 1 else f", and {found.words - 1:,} more"
    if is_target:
        skip = " (--on-bad-rows skip)" if table.of_files else ""
        return f"{begin}{rest}; correct it, or leave those rows out{skip}"
    category = option(table, "categories", found.name) if table.of_files else f"categories=[{found.name!r}]"
    return (
        f"{begin}{rest}; encode it as numbers with empty cells for gaps, take it as a category ({category}), or leave "
        f"it out of the fit ({drop(found.name, table)})"
    )


def problem_of_types(found: ColumnSurvey, table: RawTable) -> str:
    """Files of one table that hold values of different kinds."""
    assert found.first_other is not None
    row, kind = found.first_other
    return (
        f"{called(found.name, table)} holds {found.type} at first and {kind} from {table.place(row)} on; write it with "
        f"one type, or leave it out ({drop(found.name, table)})"
    )


def problem_of_gaps(found: ColumnSurvey, table: RawTable, remedy: str) -> str:
    """Missing values."""
    assert found.first_gap is not None
    how = " (--on-bad-rows skip)" if table.of_files else ""
    return (
        f"{called(found.name, table)} has {found.gaps:,} missing or infinite value(s), first in "
        f"{table.place(found.first_gap)}; {remedy} those rows out{how}"
    )


def problem_of_target(found: ColumnSurvey, table: RawTable, skips: bool, log: bool) -> str | None:
    """What is wrong with a column that must hold numbers."""
    what, start = found.what, called(found.name, table)
    if found.first_other is not None and not skips:
        return problem_of_types(found, table)
    if what == "empty":
        return f"{start} is empty; name another column"
    if what == "mixed" and not skips:
        return problem_of_words(found, table, is_target=True)
    if what not in ("number", "truth", "mixed"):
        word = "dates or times" if what == "moment" else f"words (such as {next(iter(sorted(found.levels)), '?')!r})"
        remedy = "write it as numbers, or name another column"
        return f"{start} must hold numbers and holds {word}; certgp predicts numbers, not classes: {remedy}"
    if log and found.least <= 0.0:
        asked = "--log-target" if table.of_files else "log_target=True"
        return f"{start} holds {found.least:g}, and {asked} needs numbers above zero; fit without {asked}"
    if found.gaps and not skips:
        return problem_of_gaps(found, table, "fill them or leave")
    return None


def survey_columns(
    table: RawTable, names: Iterable[str], categories: Iterable[str], also: Callable[[RawPart], None]
) -> tuple[dict[str, ColumnSurvey], int]:
    """All columns in one pass, and the number of rows; ``also`` sees each part."""
    forced = set(categories)
    found = {name: ColumnSurvey(name, table.text.decimal, name in forced) for name in names}
    n = 0
    for part in table.parts(list(found)):
        n += len(part)
        also(part)
        for survey in found.values():
            survey.add(part)
    return found, n


def _is_plain(kind: pa.DataType) -> bool:
    """Numbers, truth values and texts, which may be numbers; not dates, durations and the like."""
    return is_text(kind) or is_numeric(kind) or pa.types.is_boolean(kind)


def _order(form: str) -> str:
    """In which order a form writes day, month and year."""
    return re.sub(r"[^dmY]", "", form.split(" ")[0]) if form.startswith("%") else "Ymd"
