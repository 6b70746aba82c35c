"""Records with categories, dates, true and false and gaps, encoded as the fit encoded its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certgp.errors import TableProblemsError
from certgp.estimators.table_gp import TableGP
from certgp.serving.inputs import Asked, Described, Inputs, finite_number, middle, ranges, wrong_names
from certgp.serving.refusal import RefusedRequestError, join_problems, refuse_all
from certgp.tabular.columns import Column, LevelColumn, MeanColumn, MomentColumn, NumberColumn
from certgp.tabular.parsing import FALSE_WORDS, TRUE_WORDS, levels_of
from certgp.tabular.reading import CheckedTable
from certgp.tabular.source import FrameTable

_FEW_LEVELS = 20  # of a category; more are not listed
_KINDS = {
    "number": "number",
    "truth": "true or false",
    "moment": "date or time",
    "levels": "category",
    "means": "category",
}


class TableInputs(Inputs):
    """Columns of a table as people have them; ``TableGP`` and its encoding say what becomes of them."""

    takes_rows = False

    def __init__(self, model: TableGP) -> None:
        self._model, self._encoding = model, model.encoding_
        self.names = self.labels = self._encoding.inputs

    def read_rows(self, rows: Sequence[Sequence[float]]) -> Asked:
        """Refused: numbers in a row do not say which column they are."""
        raise RefusedRequestError(
            422,
            "the model was fitted on a table with categories, dates or gaps; send records, objects with the names of "
            f"its columns: {', '.join(self.names[:_FEW_LEVELS])}",
            "rows",
        )

    def read_records(self, records: Sequence[Mapping[str, Any]]) -> Asked:
        """The numbers that the columns become; null is a gap. Refused by field and what to do."""
        refuse_all(dict(wrong_names(records, self.names)))
        problems = {}
        for i, record in enumerate(records):
            for column in self._encoding.columns:
                value = record[column.name]
                if value is not None and not _is_usable(column, value):
                    field = f"records[{i}].{column.name}"
                    problems[field] = f"{field} must be {self._takes(column)}, found {_shown(value)}"
        refuse_all(problems)
        columns = {each.name: _as_arrow(each, [record[each.name] for record in records]) for each in self._columns}
        try:
            checked = CheckedTable.of(FrameTable(pa.table(columns), "the request", "records[{}]"), self._encoding)
        except TableProblemsError as error:
            field = "records" if error.first is None else f"records[{error.first[1]}].{error.first[0]}"
            raise RefusedRequestError(422, join_problems(error.problems), field) from error
        return Asked(checked.numbers(), "records", tuple(checked.notes()))

    def described(self) -> list[Described]:
        """Names, kinds, what was done to each column, ranges of numbers, and the levels of categories of few."""
        found = []
        for column in self._columns:
            known: Described = {"name": column.name, "kind": _KINDS[column.kind], "treatment": column.words()}
            known |= {"takes": self._takes(column), "gaps": self._encoding.imputes}
            if isinstance(column, NumberColumn):
                known |= dict(zip(("lower", "upper"), self._range(column), strict=True))
            if (levels := _few_levels(column)) is not None:
                known["levels"] = levels
            found.append(known)
        return found

    def example(self) -> list[Any]:
        """The middle of a range, a level, the first training moment."""
        return [self._example(column) for column in self._columns]

    def record_schema(self) -> dict[str, Any]:
        """By kind; null where the fit fills gaps in."""
        return {column.name: self._schema(column) for column in self._columns}

    @property
    def _columns(self) -> tuple[Column, ...]:
        found: tuple[Column, ...] = self._encoding.columns
        return found

    def _takes(self, column: Column) -> str:
        """What a value may be, in words."""
        gaps = " or null" if self._encoding.imputes else ""
        if isinstance(column, MomentColumn):
            return f'a text such as "{column.example()}"{gaps}'
        if isinstance(column, (LevelColumn, MeanColumn)):
            levels = _few_levels(column)
            return f"a text ({', '.join(levels)}){gaps}" if levels is not None else f"a text{gaps}"
        return ("a finite number" if isinstance(column, NumberColumn) else "true or false") + gaps

    def _range(self, column: Column) -> tuple[float, float]:
        lower, upper = ranges(self._model.fitted)
        j = self._encoding.names.index(column.outputs[0])
        return lower[j], upper[j]

    def _example(self, column: Column) -> Any:
        if isinstance(column, NumberColumn):
            return middle(*self._range(column))
        if isinstance(column, MomentColumn):
            return column.example()
        if isinstance(column, LevelColumn):
            return column.levels[int(np.argmax(column.shares))]
        return column.levels[0] if isinstance(column, MeanColumn) else True

    def _schema(self, column: Column) -> dict[str, Any]:
        text = {"type": "string"} if self._encoding.imputes else {"type": "string", "pattern": r"\S"}
        if isinstance(column, NumberColumn):
            ways: list[dict[str, Any]] = [{"type": "number"}]
        elif isinstance(column, (LevelColumn, MeanColumn)):
            ways = [text, {"type": "number"}, {"type": "boolean"}]
        elif isinstance(column, MomentColumn):
            ways = [text | {"format": "date"} if column.is_plain_date else text]  # other forms have no name there
        else:
            ways = [{"type": "boolean"}, {"enum": [*TRUE_WORDS, *FALSE_WORDS]}]
        if self._encoding.imputes:  # an empty text is a gap too, as in the fit
            ways += [{"type": "null"}, *([] if isinstance(column, NumberColumn) else [{"const": ""}])]
        examples = _few_levels(column) or [self._example(column)]
        return {"anyOf": ways, "description": column.words(), "examples": examples}


def _few_levels(column: Column) -> list[str] | None:
    """The levels of a category, unless they are many."""
    if not isinstance(column, (LevelColumn, MeanColumn)) or len(column.levels) > _FEW_LEVELS:
        return None
    return list(column.levels)


def _is_usable(column: Column, value: object) -> bool:
    """Is a value of the right kind? Whether it can be read the encoding knows."""
    if isinstance(column, NumberColumn):
        return finite_number(value) is not None
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)  # halves of letters, which are no text
    if isinstance(column, MomentColumn):
        return False
    if isinstance(value, bool):
        return True
    return isinstance(column, (LevelColumn, MeanColumn)) and finite_number(value) is not None


def _as_arrow(column: Column, values: Sequence[Any]) -> pa.Array:
    """Values of a kind that the column takes, in one type."""
    if isinstance(column, NumberColumn):
        return pa.array([finite_number(value) for value in values], pa.float64())
    texts = pa.array([_text(value) for value in values], pa.string())
    numbers = pa.array([value if isinstance(value, float) else None for value in values], pa.float64())
    return pc.coalesce(texts, levels_of(numbers))


def _text(value: Any) -> str | None:
    """Texts, true and false and whole numbers as levels are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or isinstance(value, float) else str(value)


def _shown(value: object) -> str:
    return repr(value)[:40]
