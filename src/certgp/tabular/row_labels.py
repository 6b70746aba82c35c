"""Columns that number the rows of a table instead of describing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from certgp.tabular.columns import LeftOut
from certgp.tabular.source import RawTable
from certgp.tabular.survey import ColumnSurvey, drop, survey_columns


@dataclass(frozen=True)
class RowLabels:
    """Columns of a table that label its rows."""

    identifiers: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()  # of columns that are used although they count the rows


def find_row_labels(table: RawTable, names: Sequence[str], keep: Sequence[str]) -> RowLabels:
    """Identifiers among the named columns of numbers, by the rule for all tables (``ColumnSurvey.is_identifier``).

    The first rows rule most columns out; only the others are read to the end. Where all are identifiers there is
    nothing else to learn from, so they are used, and said to be.
    """
    first = table.first_part(names)
    if first is None:
        return RowLabels()
    begun = {name: ColumnSurvey(name, table.text.decimal) for name in names}
    for survey in begun.values():
        survey.add(first)
    likely = [name for name, survey in begun.items() if survey.is_identifier or survey.is_consecutive]
    if not likely:
        return RowLabels()
    surveys, _ = survey_columns(table, likely, (), lambda part: None)
    found = tuple(
        LeftOut(name, survey.why_left_out())
        for name, survey in surveys.items()
        if survey.is_identifier and name not in keep
    )
    if len(found) == len(names):
        told = ", ".join(repr(each.name) for each in found)
        return RowLabels((), (f"column {told} looks like an identifier; it is used because there is no other input",))
    return RowLabels(found, tuple(notes_of_counting(surveys.values(), table)))


def notes_of_counting(surveys: Iterable[ColumnSurvey], table: RawTable) -> list[str]:
    """What a user may want to know of columns that are used and count the rows."""
    return [
        f"column {each.name!r} counts the rows; if it says nothing about them leave it out ({drop(each.name, table)})"
        for each in surveys
        if each.is_consecutive and not each.is_identifier
    ]
