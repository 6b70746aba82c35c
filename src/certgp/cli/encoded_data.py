"""Tables that are more than numbers, on the command line: to learn from, and to find the rows of a fit again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certgp.cli.table_options import given_format, options_of
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    import argparse

    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.training_data import TrainingData, TrainingRows
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.tabular.reading import SurveyedTable

    RowNumbers = NDArray[np.int64]


def looks_numeric(data: TrainingData) -> bool:
    """Are the first rows all numbers? What comes later is met by whoever reads it."""
    from certgp.data.reading import raw_batches
    from certgp.tabular.parsing import is_number_like, plain
    from certgp.tabular.source import gap_words_of

    path = data.files.files[0]
    names = (*data.inputs, *data.targets, *([] if data.weights is None else [data.weights]))
    first = next(iter(raw_batches(path, names, data.arguments.sep, lines=[])), None)
    return first is None or all(is_number_like(plain(first.column(name), gap_words_of(path))) for name in names)


def read_encoded(data: TrainingData) -> TrainingRows:
    """Survey all rows, hold some out, learn from the others what to do with each column, and encode."""
    from certgp.cli.training_data import DEFAULT_SHARE, TrainingRows, held_out_share
    from certgp.data import PickedRows, WeightedRows
    from certgp.data.files import Keeping
    from certgp.tabular.reading import Roles, SurveyedTable
    from certgp.tabular.source import FileTable

    arguments, files = data.arguments, data.files
    table = FileTable(files, given_format(arguments))
    roles = Roles(data.inputs, data.targets, data.weights, arguments.group, arguments.time_split)
    surveyed = SurveyedTable.of(table, roles, options_of(arguments, files), skips=files.skipped is not None)
    if files.skipped is not None:
        files.skipped.warn()
    share = held_out_share(arguments.test_fraction, surveyed.n_rows)
    if arguments.test_fraction is None and not share and (roles.group or roles.time):
        share = DEFAULT_SHARE  # asked for
    train, test = split_surveyed(surveyed, share, arguments.seed)
    learned, training = surveyed.learn(train)
    rows = surveyed.rows(learned, training, Keeping(arguments.memory, arguments.scratch))
    notes = tuple(surveyed.notes())
    if not len(test):
        return TrainingRows(data, rows, None, share, learned.encoding, notes)
    held_out = PickedRows(WeightedRows(rows, None), test)
    return TrainingRows(data, PickedRows(rows, train), held_out, share, learned.encoding, notes)


def split_surveyed(surveyed: SurveyedTable, share: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
    """Rows to learn from and rows to score on: random ones, whole groups, or the latest."""
    import numpy as np

    from certgp.cli.training_data import split_rows
    from certgp.tabular.splitting import hold_out_groups, hold_out_latest

    roles = surveyed.roles
    if not share or (roles.group is None and roles.time is None):
        return split_rows(surveyed.n_rows, share, seed)
    if roles.group is not None and roles.time is not None:
        raise InvalidInputError("--group and --time-split both say which rows to hold out; give one of them")
    if roles.group is not None:
        held = hold_out_groups(surveyed.values(roles.group).astype(np.int64), share, seed, roles.group)
    else:
        assert roles.time is not None
        held = hold_out_latest(surveyed.values(roles.time), share, roles.time)
    if (~held).sum() < 2:
        raise InvalidInputError(f"--test-fraction {share:g} leaves fewer than 2 rows to learn from; give less")
    return np.flatnonzero(~held), np.flatnonzero(held)


def find_rows_of_fit(
    model: GPRegressor, files: TableFiles, arguments: argparse.Namespace
) -> tuple[Rows, Rows | None] | None:
    """Rows that a model learned from and rows that its fit held out, from the table of the fit; None for other tables.

    What is done to the columns is learned again, and must come out the same.
    """
    from certgp.data import PickedRows
    from certgp.data.files import Keeping
    from certgp.tabular.encoding import TableOptions
    from certgp.tabular.reading import Roles, SurveyedTable
    from certgp.tabular.source import FileTable

    encoding, fitted = model.encoding_, model.table_
    encoding.require(files.names, str(files.files[0]))
    files.require(encoding.targets)
    weights, group, time = (None, None, None) if fitted is None else (fitted.weights, fitted.group, fitted.time)
    roles = Roles(encoding.inputs, encoding.targets, weights, group, time)
    if not set(roles.others) <= set(files.names):
        return None
    table = FileTable(files, given_format(arguments, encoding.text))
    surveyed = SurveyedTable.of(table, roles, TableOptions(**encoding.options), files.skipped is not None)
    if fitted is not None and surveyed.n_rows == fitted.n_rows:
        train, test = split_surveyed(surveyed, fitted.test_fraction, fitted.seed)
    elif surveyed.n_rows == number_of_rows(model):
        train, test = split_surveyed(surveyed, 0.0, 0)
    else:
        return None
    learned, training = surveyed.learn(train)
    if learned.encoding.columns != encoding.columns:
        return None
    rows = surveyed.rows(learned, training, Keeping(arguments.memory, arguments.scratch))
    return PickedRows(rows, train), PickedRows(rows, test) if len(test) else None


def rows_of_fit(model: GPRegressor, files: TableFiles, arguments: argparse.Namespace) -> tuple[Rows, Rows | None]:
    """The same where other tables are refused."""
    found = find_rows_of_fit(model, files, arguments)
    if found is None:
        raise DataFileError(
            f"the files of --train are not the table of the fit ({number_of_rows(model):,} rows learned from): give "
            "the file(s) that were given to 'certgp fit', with the same options"
        )
    return found


def number_of_rows(model: GPRegressor) -> int:
    """That the model learned from; of several outputs the most."""
    return int(max(model.n_rows_)) if isinstance(model.n_rows_, tuple) else int(model.n_rows_)
