"""The rows behind a saved model, found again in the files that were given to 'certgp fit'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certgp.cli.columns import columns_for, rows_for
from certgp.cli.training_data import split_rows
from certgp.errors import DataFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.output import Console
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor


def training_rows(model: GPRegressor, train: TableFiles, console: Console) -> Rows:
    """The rows the model learned from; those that 'fit' held out for its test are left out again."""
    import numpy as np

    from certgp.data import PickedRows, WeightedRows

    columns = columns_for(model, train, console)
    if columns.target is None:
        known = model.target_name_ or "y"
        raise DataFileError(f"the files of --train have no column {known!r}, the target the model was fitted on")
    weights = None if model.table_ is None else model.table_.weights
    names = [*columns.inputs, columns.target, *([] if weights is None else [weights])]
    values, width = train.read(names).values, len(columns.inputs)
    rows: Rows = rows_for(model, values[:, :width], values[:, width])
    present = np.ones(len(values), dtype=bool)
    if weights is not None:
        rows, present = WeightedRows(rows, values[:, -1]), values[:, -1] != 0.0
    learned = _rows_of_the_fit(model, present)
    if len(learned) == len(values):
        return rows
    console.notice(f"note: the {len(values) - len(learned)} row(s) that the fit held out for its test are left out")
    return PickedRows(rows, learned)


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
