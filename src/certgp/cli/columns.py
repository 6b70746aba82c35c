"""Which columns of new files are a model's inputs and its target.

Columns with names are matched by name. Arrays (.npz, .npy) have none, so what stands in for them, x0, x1, ..., is never
compared with the names of a table: where either side has no names, columns are matched by position, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from certgp.errors import DataFileError

if TYPE_CHECKING:
    from certgp.cli.output import Console
    from certgp.data import ArrayRows, Rows
    from certgp.data.reading import Array
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor

_ARRAY_TARGET = "y"  # what an .npz file calls its target


@dataclass(frozen=True)
class Columns:
    """Columns of certain files, in the order of a model's inputs."""

    inputs: tuple[str, ...]
    target: str | None  # where the files hold it


def rows_for(model: GPRegressor, X: Array, y: Array | None = None) -> ArrayRows:
    """X (n, D) as a fitted model wants it: with its own names where it has any."""
    from certgp.data import ArrayRows

    return ArrayRows(X, y, _names(model) or None)


def named_for(model: GPRegressor, rows: Rows) -> Rows:
    """Rows as a fitted model wants them: with its own names where it has any."""
    rows.names = _names(model) or None
    return rows


def columns_for(model: GPRegressor, files: TableFiles, console: Console) -> Columns:
    """The model's columns in these files; a match by position between names and no names is announced."""
    from certgp.data.reading import listed

    names = _names(model)
    if names and not files.nameless:
        files.require(names)
        target = model.target_name_
        return Columns(names, target if target in files.names else None)
    columns = _by_position(model, files)
    if names:
        console.notice(f"note: {files.files[0]} has no column names; its columns are taken as {listed(names)}")
    elif not files.nameless:
        console.notice(
            f"note: the model was fitted on columns without names; {listed(columns.inputs)} are taken in this order"
        )
    return columns


def _names(model: GPRegressor) -> tuple[str, ...]:
    """Columns the model was fitted on; none if it saw bare arrays."""
    return model.column_names


def _by_position(model: GPRegressor, files: TableFiles) -> Columns:
    """As many columns as the model has inputs, or arrays laid out like those it was fitted on."""
    if files.nameless:  # files of other widths would lose columns unnoticed
        files.require_same_columns(except_for=(_ARRAY_TARGET,))
    fitted_target, table = model.target_name_, model.table_
    is_target_known = files.nameless or fitted_target == _ARRAY_TARGET
    target = _ARRAY_TARGET if is_target_known and _ARRAY_TARGET in files.names else None
    offered = tuple(name for name in files.names if name != target)
    if len(offered) == model.n_features_in_:
        return Columns(offered, target)
    if files.nameless and table is not None and table.width == len(offered):
        among_inputs = fitted_target if fitted_target in offered else None  # as in one .npy array of everything
        return Columns(tuple(offered[i] for i in table.positions), target or among_inputs)
    raise _wrong_number(model, files, offered)


def _wrong_number(model: GPRegressor, files: TableFiles, offered: tuple[str, ...]) -> DataFileError:
    from certgp.data.reading import listed

    names = _names(model)
    if names:
        return DataFileError(
            f"{files.files[0]} has {len(offered)} column(s) without names but the model was fitted on {listed(names)}; "
            "give exactly these columns in this order, or a file with column names"
        )
    return DataFileError(
        f"the model was fitted on {model.n_features_in_} column(s) without names but the data have {len(offered)}; "
        "give exactly its input columns, in the order of the fit"
    )
