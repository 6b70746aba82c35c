"""Rows of other files for a saved model: numbers by name or position, or a table encoded as the fit did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certgp.cli.columns import Columns, columns_for, named_for
from certgp.cli.table_options import given_format
from certgp.cli.training_data import read_rows
from certgp.errors import DataFileError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from certgp.cli.output import Console
    from certgp.data import Rows
    from certgp.data.reading import Array
    from certgp.data.tables import RowNumbers, TableFiles
    from certgp.estimators import GPRegressor
    from certgp.tabular.encoding import Encoding
    from certgp.tabular.reading import CheckedTable


@dataclass(frozen=True)
class ModelFacts:
    """What a model file says of its table, known before torch is imported."""

    encoding: Encoding | None
    names: tuple[str, ...]  # of the inputs, where they have any
    outputs: int = 1

    @staticmethod
    def read(path: Path) -> ModelFacts:
        """Of a file that exists; what is wrong with it is for ``load`` to say."""
        from certgp.model_header import read_values

        values = read_values(path)
        encoding, outputs = values.get("encoding"), values.get("outputs") or [values]
        if encoding is not None:
            from certgp.tabular.encoding import Encoding

            return ModelFacts(Encoding.from_description(encoding), (), len(outputs))
        return ModelFacts(None, tuple(outputs[0].get("feature_names") or ()), len(outputs))

    def open(self, paths: list[str], arguments: argparse.Namespace) -> TableFiles:
        """Some files whose columns fit the model, headers only."""
        from certgp.data.skipped import skipping
        from certgp.data.tables import open_table

        files = open_table(paths, skipping(arguments.on_bad_rows), self._sep(paths, arguments))
        if self.encoding is not None:
            self.encoding.require(files.names, str(files.files[0]))
        elif self.names and not files.nameless:
            files.require(self.names)
        return files

    def check(self, files: TableFiles, arguments: argparse.Namespace) -> CheckedTable | None:
        """All rows looked at, where the model has an encoding."""
        if self.encoding is None:
            return None
        from certgp.tabular.reading import CheckedTable
        from certgp.tabular.source import FileTable

        table = FileTable(files, given_format(arguments, self.encoding.text))
        return CheckedTable.of(table, self.encoding, skips=files.skipped is not None)

    def _sep(self, paths: list[str], arguments: argparse.Namespace) -> str | None:
        return arguments.sep or (None if self.encoding is None else self.encoding.text.sep)


class NewTable(ABC):
    """Inputs, and targets where the files hold them, some rows at a time; both in the same chunks."""

    has_target: bool

    @abstractmethod
    def inputs(self, rows: int) -> Iterator[tuple[RowNumbers, Array]]:
        """Numbers of rows in the files, and X (n, D), ``rows`` at a time."""

    @abstractmethod
    def targets(self, rows: int) -> Iterator[Array]:
        """y (n,) of the same rows, in its own units."""


class NumericTable(NewTable):
    """Columns of numbers."""

    def __init__(self, files: TableFiles, columns: Columns) -> None:
        self._files, self._columns = files, columns
        self.has_target = columns.target is not None

    def inputs(self, rows: int) -> Iterator[tuple[RowNumbers, Array]]:
        return self._files.chunks(self._columns.inputs, rows)

    def targets(self, rows: int) -> Iterator[Array]:
        assert self._columns.target is not None
        return (part[:, 0] for _, part in self._files.chunks([self._columns.target], rows))


class EncodedTable(NewTable):
    """A table of any columns, encoded as the fit did."""

    def __init__(self, checked: CheckedTable) -> None:
        self.checked = checked
        self.has_target = all(name in checked.table.names for name in checked.encoding.targets)

    def inputs(self, rows: int) -> Iterator[tuple[RowNumbers, Array]]:
        return self.checked.chunks(rows)

    def targets(self, rows: int) -> Iterator[Array]:
        return (part[:, 0] for part in self.all_targets(rows))

    def all_targets(self, rows: int) -> Iterator[Array]:
        """y (n, q); what is no number is refused."""
        import numpy as np

        for _, part in self.checked.target_chunks(rows):
            if not np.isfinite(part).all():
                missing = int((~np.isfinite(part)).sum())
                target = ", ".join(self.checked.encoding.targets)
                raise DataFileError(f"column {target!r} has {missing} value(s) that are no numbers")
            yield part


def open_new(model: GPRegressor, files: TableFiles, checked: CheckedTable | None, console: Console) -> NewTable:
    """Files with rows to predict; what was done that a user should know is said."""
    if checked is None:
        return NumericTable(files, columns_for(model, files, console))
    for note in checked.notes():
        console.notice(f"note: {note}")
    return EncodedTable(checked)


def read_new(
    model: GPRegressor,
    files: TableFiles,
    checked: CheckedTable | None,
    arguments: argparse.Namespace,
    console: Console,
    with_target: bool = False,
) -> Rows:
    """All rows at once, as the model takes them, in memory or a scratch file."""
    if checked is None:
        columns = columns_for(model, files, console)
        target = _required(columns.target, model, files) if with_target else None
        return named_for(model, read_rows(files, columns.inputs, target, None, arguments))
    table = open_new(model, files, checked, console)
    assert isinstance(table, EncodedTable)
    if with_target and not table.has_target:
        _required(None, model, files)
    return _store(table, arguments, with_target)


def _store(table: EncodedTable, arguments: argparse.Namespace, with_target: bool) -> Rows:
    import numpy as np

    from certgp.data.files import Keeping
    from certgp.data.store import StoredRows

    encoding, rows = table.checked.encoding, 65_536
    q, width = len(encoding.targets) if with_target else 0, len(encoding.names)
    store = Keeping(arguments.memory, arguments.scratch).store(width + q, np.dtype(np.float64))
    targets = table.all_targets(rows) if with_target else None
    for _, X in table.inputs(rows):
        store.append(X if targets is None else np.concatenate([X, encoding.target(next(targets))], 1))
    target: Any = None if not q else width if q == 1 else tuple(range(width, width + q))
    return StoredRows(store.numbers(), width, encoding.names, target=target)


def _required(target: str | None, model: GPRegressor, files: TableFiles) -> str:
    if target is None:
        raise DataFileError(
            f"{files.files[0]} has no column {model.target_name_ or 'y'!r}, the target; a report compares "
            "predictions with it"
        )
    return target
