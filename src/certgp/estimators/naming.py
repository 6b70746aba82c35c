"""Rows whose columns have names, without needing pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.estimators.base import GPRegressor

Estimator = TypeVar("Estimator", bound=GPRegressor)


def named_rows(X: NDArray[np.floating], names: Sequence[str]) -> pa.Table:
    """X (N, D) as an Arrow table, which scikit-learn understands as a frame."""
    return pa.table({name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)})


def fit_named(
    estimator: Estimator, X: NDArray[np.floating], y: NDArray[np.floating], names: Sequence[str], target: str
) -> Estimator:
    """Fit and remember the names of the columns (``feature_names_in_``) and of the target (``target_name_``)."""
    fitted: Estimator = estimator.fit(named_rows(X, names), y)
    fitted.target_name_ = target
    return fitted
