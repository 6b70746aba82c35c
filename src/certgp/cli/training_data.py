"""The table a model learns from: its target, its inputs, and the rows that are held out for a test."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from certgp.cli.arguments import column_names
from certgp.cli.cluster import engine_of, refuse_scheduler
from certgp.cli.table_options import asks_for_encoding, given_format, kept_columns
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.tabular.columns import LeftOut
    from certgp.tabular.encoding import Encoding
    from certgp.tabular.row_labels import RowLabels

    RowNumbers = NDArray[np.int64]

DEFAULT_SHARE = 0.1  # of the rows, to score on
_MOST_HELD_OUT = 2_000
_FEW_ROWS = 100  # below which none is held out unless asked for: scores on fewer than 10 say nothing


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of a table: those to learn from and, where asked for, those to score on."""

    data: TrainingData
    train: Rows
    test: Rows | None
    test_fraction: float
    encoding: Encoding | None = None  # what was done to the columns, where they were not numbers
    notes: tuple[str, ...] = ()  # what a user may want to know of them
    left_out: tuple[LeftOut, ...] = ()  # columns of a table of numbers that are not used

    def fit(self, model: GPRegressor) -> None:
        """Fit and remember the table's layout; names that stand in for missing ones are not remembered as names."""
        from certgp.data.tables import FittedTable

        data, arguments = self.data, self.data.arguments
        n_rows = self.train.n_rows + (0 if self.test is None else self.test.n_rows)
        model.fit(self.train)
        model.target_name_ = data.target
        layout = data.positions()
        given = (data.weights, arguments.group, arguments.time_split)
        left_out = tuple((each.name, each.reason) for each in self.left_out)
        model.table_ = FittedTable(n_rows, self.test_fraction, arguments.seed, *layout, *given, left_out)
        model.encoding_ = self.encoding


@dataclass(frozen=True)
class TrainingData:
    """Files of which only the headers have been read, and what their columns are for."""

    arguments: argparse.Namespace  # of a command with DATA, --target, --weights, --drop, --test-fraction, --seed and
    # those of ``add_reading_options`` and ``add_column_options``
    files: TableFiles
    targets: tuple[str, ...]
    inputs: tuple[str, ...]
    weights: str | None  # the column of weights, where there is one

    @staticmethod
    def open(arguments: argparse.Namespace) -> TrainingData:
        """Check the columns that were named, before anything long begins."""
        from certgp.data.skipped import skipping
        from certgp.data.tables import open_table

        files = open_table(arguments.data, skipping(arguments.on_bad_rows), arguments.sep)
        targets = _target_columns(arguments.target, files)
        splitting = [name for name in (arguments.group, arguments.time_split) if name is not None]
        files.require(splitting)
        inputs = _input_columns(arguments, targets, files)
        return TrainingData(arguments, files, targets, inputs, arguments.weights)

    @property
    def target(self) -> str:
        """What messages call the target."""
        return ", ".join(self.targets)

    def read(self) -> TrainingRows:
        """Read the rows and split them. Tables of numbers are read once, without a second copy; of others, and of those
        that turn out to be others, the columns are encoded.
        """
        from certgp.cli.encoded_data import looks_numeric

        if len(self.targets) > 1 or asks_for_encoding(self.arguments) or not looks_numeric(self):
            return self._read_encoded()
        try:
            return self._read_numbers()
        except DataFileError:
            if engine_of(self.arguments) is not None:
                raise
            return self._read_encoded()  # which tells all that is wrong, not the first

    def _read_encoded(self) -> TrainingRows:
        from certgp.cli.encoded_data import read_encoded

        refuse_scheduler(self.arguments, "a table with categories, dates, gaps or several targets")
        return read_encoded(self)

    def _read_numbers(self) -> TrainingRows:
        from certgp.data import WeightedRows

        found = self._row_labels()
        names = {each.name for each in found.identifiers}
        data = replace(self, inputs=tuple(name for name in self.inputs if name not in names)) if names else self
        rows = read_rows(self.files, data.inputs, self.target, self.weights, self.arguments)
        share = held_out_share(self.arguments.test_fraction, rows.n_rows)
        train, test = split_rows(rows.n_rows, share, self.arguments.seed)
        known = TrainingRows(data, rows, None, share, notes=found.notes, left_out=found.identifiers)
        if not len(test):
            return known
        return replace(known, train=rows.pick(train), test=WeightedRows(rows.pick(test), None))

    def _row_labels(self) -> RowLabels:
        """Identifiers and counters among the inputs; arrays without names have none. Whoever reads the rows says what
        is wrong with them.
        """
        from certgp.tabular.row_labels import RowLabels, find_row_labels
        from certgp.tabular.source import FileTable

        keep = kept_columns(self.arguments, self.files)
        with suppress(DataFileError):
            if not self.files.nameless:
                return find_row_labels(FileTable(self.files, given_format(self.arguments)), self.inputs, keep)
        return RowLabels()

    def positions(self) -> tuple[int | None, tuple[int, ...]]:
        """Width of an array X and where the inputs are in it; nothing where columns have names."""
        if not self.files.nameless:
            return None, ()
        columns = [name for name in self.files.names if name != "y"]
        return len(columns), tuple(columns.index(name) for name in self.inputs)


def held_out_share(asked: float | None, n: int) -> float:
    """The share of n rows to score on: as asked for, or else a tenth, at most 2,000 rows, and none of a few."""
    if asked is not None:
        return asked
    return 0.0 if n < _FEW_ROWS else min(DEFAULT_SHARE, _MOST_HELD_OUT / n)


def read_rows(
    files: TableFiles,
    inputs: tuple[str, ...],
    target: str | None,
    weights: str | None,
    arguments: argparse.Namespace,
) -> Rows:
    """Columns of some files, decoded once into memory or a scratch file, or by the workers of a cluster; what was left
    out is said.
    """
    from certgp.data.files import Keeping, Layout, store_files

    layout, engine = Layout(inputs, target, weights), engine_of(arguments)
    if engine is None:
        rows: Rows = store_files(files, layout, Keeping(arguments.memory, arguments.scratch))
    else:
        rows = engine.read_files(files, layout)
    if files.skipped is not None:
        files.skipped.warn()
    return rows


def split_rows(n: int, test_fraction: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
    """Rows to learn from and rows to score on, in their original order; a fraction above 0 means at least one."""
    import numpy as np

    n_test = max(1, round(n * test_fraction)) if test_fraction else 0
    if n - n_test < 2:
        raise InvalidInputError(
            f"{n} row(s) with --test-fraction {test_fraction:g} leave fewer than 2 to learn from; give more"
        )
    order = np.random.default_rng(seed).permutation(n) if n_test else np.arange(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _target_columns(given: str | None, files: TableFiles) -> tuple[str, ...]:
    """The columns to predict: those named, or y of .npz files."""
    from certgp.data.reading import listed

    if given is None and not all(file.suffix.lower() == ".npz" for file in files.files):
        raise DataFileError(f"name the column to predict with --target; the columns are: {listed(files.names)}")
    target = "y" if given is None else given
    targets = column_names([target], files.names)
    files.require(targets)
    twice = [name for name in targets if targets.count(name) > 1]
    if twice:
        raise InvalidInputError(f"--target names {twice[0]!r} twice; name each column once")
    return targets


def _input_columns(arguments: argparse.Namespace, targets: tuple[str, ...], files: TableFiles) -> tuple[str, ...]:
    """All columns but the targets, the weights, the groups and the dropped ones."""
    weights, group, names = arguments.weights, arguments.group, column_names(arguments.drop, files.names)
    files.require(names)
    for option, given in {"--target": targets, "--weights": (weights,)}.items():
        for name in given:
            if name in names:
                raise InvalidInputError(f"{name!r} is both {option} and --drop; leave one of them out")
    if weights is not None:
        if weights in targets:
            raise InvalidInputError(f"{weights!r} is both --target and --weights; name another column for one of them")
        files.require([weights])
    files.require_same_columns(except_for=names)
    inputs = tuple(name for name in files.names if name not in (*names, *targets, weights, group))
    if not inputs:
        raise DataFileError(f"{', '.join(targets)!r} is the only column; at least one input column is needed")
    return inputs
