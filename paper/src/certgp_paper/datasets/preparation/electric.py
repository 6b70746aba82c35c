"""Electric: household_power_consumption.txt of UCI set 235, with 19 columns made from date, time and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certgp.errors import DataFileError
from certgp_paper.datasets.preparation.archives import zipped
from certgp_paper.datasets.preparation.text import Layout, read_columns

Array = NDArray[np.float64]
NAMES = (
    "Date", "Time", "Global_active_power", "Global_reactive_power", "Voltage", "Global_intensity",
    "Sub_metering_1", "Sub_metering_2", "Sub_metering_3",
)  # fmt: skip
_MEASURED = ("Global_reactive_power", "Voltage", "Sub_metering_1", "Sub_metering_2", "Sub_metering_3")
_SATURDAY = 5  # Monday is 0


def electric(paths: Sequence[Path]) -> tuple[Array, Array]:
    """Inputs (N, 19) and the global active power (N,) of every minute whose measurements are complete.

    Columns 0-11 say which month it is, column 12 whether it is a weekend; then the hour of the day as a fraction,
    reactive power, voltage and the three sub-meterings. The released code of the paper standardises columns 13-18 of 19
    only, so it has 13 indicators and 6 numbers too; which ones it does not say. The current is left out: times the
    voltage it is the target.
    """
    file = zipped(paths[0], "household_power_consumption.txt")
    layout = Layout(9, delimiter=";", header=dict(enumerate(NAMES)), texts=(0, 1), missing=("?", ""))
    table = read_columns(file, layout)
    days = _parse(table.column("0"), "%d/%m/%Y", file.name)
    times = _parse(table.column("1"), "%H:%M:%S", file.name)
    X = np.zeros((table.num_rows, 19))
    X[np.arange(len(X)), _array(pc.month(days)).astype(np.int64) - 1] = 1.0
    X[:, 12] = _array(pc.day_of_week(days)) >= _SATURDAY
    X[:, 13] = _array(pc.hour(times)) + _array(pc.minute(times)) / 60.0
    for j, name in enumerate(_MEASURED, 14):
        X[:, j] = table.column(str(NAMES.index(name))).to_numpy()
    return X, np.array(table.column("2").to_numpy())


def _parse(texts: pa.ChunkedArray, form: str, file: str) -> pa.ChunkedArray:
    parsed = pc.strptime(texts, format=form, unit="s", error_is_null=True)
    if parsed.null_count:
        text = texts.filter(pc.is_null(parsed))[0].as_py()
        raise DataFileError(f"{file}: {text!r} is not of the form {form} ({parsed.null_count} such line(s))")
    return parsed


def _array(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)
