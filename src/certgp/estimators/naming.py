"""Rows whose columns have names, without needing pandas, and what a model remembers of the table it was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.estimators.base import GPRegressor

Estimator = TypeVar("Estimator", bound=GPRegressor)


@dataclass(frozen=True)
class FittedTable:
    """The layout of the table behind a fit, so that its inputs and its split can be found again; it holds no data."""

    n_rows: int  # with those held out for a test
    test_fraction: float
    seed: int  # of the split
    width: int | None = None  # number of columns of an array, where columns have no names
    positions: tuple[int, ...] = ()  # of the inputs in that array


def named_rows(X: NDArray[np.floating], names: Sequence[str]) -> pa.Table:
    """X (N, D) as an Arrow table, which scikit-learn understands as a frame."""
    return pa.table({name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)})


def rows_for(estimator: GPRegressor, X: NDArray[np.floating]) -> Any:
    """X (n, D) for a fitted estimator: with the names of its columns where it knows any."""
    return named_rows(X, estimator.column_names) if estimator.column_names else X


def fit_named(
    estimator: Estimator,
    X: NDArray[np.floating],
    y: NDArray[np.floating],
    names: Sequence[str] | None,
    target: str,
    table: FittedTable | None = None,
) -> Estimator:
    """Fit and remember the names of the columns (``feature_names_in_``; none with ``names=None``), the name of the
    target (``target_name_``) and the table's layout (``table_``).
    """
    fitted: Estimator = estimator.fit(X if names is None else named_rows(X, names), y)
    fitted.target_name_ = target
    if table is not None:
        fitted.table_ = table
    return fitted
