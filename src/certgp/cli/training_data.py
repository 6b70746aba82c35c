"""The table a model learns from: its target, its inputs, and the rows that are held out for a test."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certgp.cli.cluster import engine_of
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor

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

    def fit(self, model: GPRegressor) -> None:
        """Fit and remember the table's layout; names that stand in for missing ones are not remembered as names."""
        from certgp.data.tables import FittedTable

        data, arguments = self.data, self.data.arguments
        n_rows = self.train.n_rows + (0 if self.test is None else self.test.n_rows)
        model.fit(self.train)
        model.target_name_ = data.target
        layout = data.positions()
        model.table_ = FittedTable(n_rows, self.test_fraction, arguments.seed, *layout, data.weights)


@dataclass(frozen=True)
class TrainingData:
    """Files of which only the headers have been read, and what their columns are for."""

    arguments: argparse.Namespace  # of a command with DATA, --target, --weights, --drop, --test-fraction, --seed and
    # those of ``add_reading_options``
    files: TableFiles
    target: str
    inputs: tuple[str, ...]
    weights: str | None  # the column of weights, where there is one

    @staticmethod
    def open(arguments: argparse.Namespace) -> TrainingData:
        """Check the columns that were named, before anything long begins."""
        from certgp.data.skipped import skipping
        from certgp.data.tables import open_table

        files = open_table(arguments.data, skipping(arguments.on_bad_rows))
        target = _target_column(arguments.target, files)
        inputs = _input_columns(arguments.drop, target, arguments.weights, files)
        return TrainingData(arguments, files, target, inputs, arguments.weights)

    def read(self) -> TrainingRows:
        """Read the rows once and split them, without a second copy."""
        from certgp.data import WeightedRows

        rows = read_rows(self.files, self.inputs, self.target, self.weights, self.arguments)
        share = held_out_share(self.arguments.test_fraction, rows.n_rows)
        train, test = split_rows(rows.n_rows, share, self.arguments.seed)
        if not len(test):
            return TrainingRows(self, rows, None, share)
        return TrainingRows(self, rows.pick(train), WeightedRows(rows.pick(test), None), share)

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


def _target_column(given: str | None, files: TableFiles) -> str:
    """The column to predict: the one named, or y of .npz files."""
    from certgp.data.reading import listed

    if given is None and not all(file.suffix.lower() == ".npz" for file in files.files):
        raise DataFileError(f"name the column to predict with --target; the columns are: {listed(files.names)}")
    target = "y" if given is None else given
    parts = [part.strip() for part in target.split(",")]
    if target not in files.names and len(parts) > 1 and all(part in files.names for part in parts):
        raise InvalidInputError(
            f"--target takes one column, found {target!r}; for several outputs fit in Python with y of shape (n, "
            f"{len(parts)}), save the model, and use certgp predict with it"
        )
    files.require([target])
    return target


def _input_columns(dropped: list[str], target: str, weights: str | None, files: TableFiles) -> tuple[str, ...]:
    """All columns but the target, the weights and the dropped ones."""
    names = [name for given in dropped for name in _names_in(given, files)]
    files.require(names)
    for option, name in {"--target": target, "--weights": weights}.items():
        if name in names:
            raise InvalidInputError(f"{name!r} is both {option} and --drop; leave one of them out")
    if weights is not None:
        if weights == target:
            raise InvalidInputError(f"{target!r} is both --target and --weights; name another column for one of them")
        files.require([weights])
    files.require_same_columns(except_for=names)
    inputs = tuple(name for name in files.names if name not in (*names, target, weights))
    if not inputs:
        raise DataFileError(f"{target!r} is the only column; at least one input column is needed")
    return inputs


def _names_in(given: str, files: TableFiles) -> list[str]:
    """One column, or several with commas between them; a column's own name may hold a comma."""
    return [given] if given in files.names else [name.strip() for name in given.split(",")]
