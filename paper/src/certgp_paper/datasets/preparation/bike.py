"""Bike: hour.csv of UCI set 275, one-hot encoded to the paper's 57 columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certgp.errors import DataFileError
from certgp_paper.datasets.preparation.archives import zipped
from certgp_paper.datasets.preparation.text import Layout, read_numbers

Array = NDArray[np.float64]
# hour.csv without its text column dteday
_NAMES = (
    "instant", "dteday", "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit",
    "temp", "atemp", "hum", "windspeed", "casual", "registered", "cnt",
)  # fmt: skip
# categories of each column that is encoded: first value and how many there are
CATEGORIES = {
    "season": (1, 4),
    "mnth": (1, 12),
    "hr": (0, 24),
    "holiday": (0, 2),
    "weekday": (0, 7),
    "workingday": (0, 2),
}
NUMBERS = ("yr", "weathersit", "temp", "atemp", "hum", "windspeed")


def bike(paths: Sequence[Path]) -> tuple[Array, Array]:
    """One-hot inputs (N, 57) and the number of rentals (N,).

    The paper one-hot encodes "some of the categorical features" and arrives at D = 57. Season, month, hour, holiday,
    weekday and working day make 4 + 12 + 24 + 2 + 7 + 2 = 51 indicators; the year and the weather, whose numbers are in
    a natural order, and the four measurements stay as they are: 51 + 6 = 57. The row number, the date and the two
    counts that add up to the target are left out.
    """
    file = zipped(paths[0], "hour.csv")
    values = read_numbers(file, Layout(17, header=dict(enumerate(_NAMES)), texts=(1,)))
    columns = dict(zip((name for name in _NAMES if name != "dteday"), values.T, strict=True))
    indicators = [_indicators(columns[name], name, file.name) for name in CATEGORIES]
    return np.column_stack([*indicators, *(columns[name] for name in NUMBERS)]), columns["cnt"].copy()


def _indicators(values: Array, name: str, file: str) -> Array:
    first, count = CATEGORIES[name]
    levels = np.arange(first, first + count)
    known = np.isin(values, levels)
    if not known.all():
        at = int(np.argmin(known))
        raise DataFileError(
            f"{file}, line {at + 2}: {name} is {values[at]:g}; it should be a whole number "
            f"from {first} to {first + count - 1}"
        )
    return np.asarray(values[:, None] == levels, dtype=np.float64)
