"""The rows behind a saved model, found again in the files that were given to 'certgp fit'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certgp.cli.columns import columns_for, named_for
from certgp.cli.training_data import read_rows, split_rows
from certgp.errors import DataFileError

if TYPE_CHECKING:
    import argparse

    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.output import Console
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor


def training_rows(model: GPRegressor, train: TableFiles, arguments: argparse.Namespace, console: Console) -> Rows:
    """The rows the model learned from; those that 'fit' held out for its test are left out again."""
    import numpy as np

    from certgp.cli.encoded_data import rows_of_fit

    if model.encoding_ is not None:
        learned_from, held_out = rows_of_fit(model, train, arguments)
        if held_out is not None:
            console.notice(f"note: the {held_out.n_rows} row(s) that the fit held out for its test are left out")
        return learned_from
    columns = columns_for(model, train, console)
    if columns.target is None:
        known = model.target_name_ or "y"
        raise DataFileError(f"the files of --train have no column {known!r}, the target the model was fitted on")
    weights = None if model.table_ is None else model.table_.weights
    rows = named_for(model, read_rows(train, columns.inputs, columns.target, weights, arguments))
    given = rows.weights(slice(None))
    learned = _rows_of_the_fit(model, np.ones(rows.n_rows, dtype=bool) if given is None else given != 0.0)
    if len(learned) == rows.n_rows:
        return rows
    console.notice(f"note: the {rows.n_rows - len(learned)} row(s) that the fit held out for its test are left out")
    return rows.pick(learned)


def _rows_of_the_fit(model: GPRegressor, present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Which of some rows the model learned from: all, or those of the split that ``fit --test-fraction`` made; those of
    weight zero, not ``present``, were left out.
    """
    n, learned, table = len(present), model.n_rows_, model.table_
    if int(present.sum()) == learned:
        return split_rows(n, 0.0, 0)[0]
    if table is not None and table.test_fraction and n == table.n_rows:
        rows, _ = split_rows(n, table.test_fraction, table.seed)
        if int(present[rows].sum()) == learned:
            return rows
    held_out = (
        f" of {table.n_rows}, with --test-fraction {table.test_fraction:g}" if table and table.test_fraction else ""
    )
    raise DataFileError(
        f"the files of --train have {n} row(s) but the model learned from {learned}{held_out}; give the file(s) that "
        "were given to 'certgp fit'"
    )
