"""The paper's versions of two data sets, out of the versions in circulation that hold the same information.

Both versions have centred columns and a target on a log scale whose smallest value is log(1), so counts come back
exactly after rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certgp.errors import DataFileError
from certgp_paper.datasets.preparation.bike import CATEGORIES, NUMBERS
from certgp_paper.datasets.preparation.kegg import DROPPED, NAMES, TARGET

Array = NDArray[np.float64]
_BIKE_COLUMNS = (
    "year", "month", "day", "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit",
    "temp", "atemp", "hum", "windspeed", "casual", "registered",
)  # fmt: skip
_KEGG_COLUMNS = tuple(name for name in NAMES if name not in ("Edges", "NumberOfSelfLoops", "SelfLoops"))


def bike(X: Array, y: Array) -> tuple[Array, Array]:
    """The one-hot inputs (N, 57) and counts (N,) from the centred 17 columns and log counts."""
    columns = dict(zip(_BIKE_COLUMNS, X.T, strict=True))
    indicators = []
    for name, (_, count) in CATEGORIES.items():
        levels, codes = np.unique(columns[name], return_inverse=True)
        if len(levels) != count:
            raise DataFileError(
                f"the column {name} of bike.npz has {len(levels)} values, expected {count}: not the version in "
                "circulation; move the file away and run 'certgp datasets fetch bike'"
            )
        indicators.append(np.eye(count)[codes])
    return np.column_stack([*indicators, *(columns[name] for name in NUMBERS)]), _counts(y)


def keggdirected(X: Array, y: Array) -> tuple[Array, Array]:
    """The paper's 19 inputs and the clustering coefficient, from the centred 20 columns and log(edges)."""
    columns = dict(zip(_KEGG_COLUMNS, X.T, strict=True)) | {"Edges": _counts(y)}
    inputs = [columns[name] for name in NAMES if name not in (*DROPPED, TARGET)]
    return np.column_stack(inputs), columns[TARGET].copy()


def _counts(log_counts: Array) -> Array:
    return np.asarray(np.rint(np.exp(log_counts - log_counts.min())), dtype=np.float64)
