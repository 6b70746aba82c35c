"""A table is in memory once: what fit and predict take above the same command on a hundred rows."""

from __future__ import annotations

import pytest

import cli_memory

ROWS, COLUMNS = 300_000, 10
MOST_COPIES = 2.5
BUFFERS_MIB = 64.0  # of chunks, whatever the number of rows
MOST_FOR_PREDICT_MIB = 160.0


@pytest.mark.parametrize(
    ("method", "ending", "commands"), [("mercer", ".csv", ("fit", "predict")), ("fourier", ".parquet", ("fit",))]
)
def test_memory_above_the_base(method, ending, commands):
    for run in cli_memory.measure(ROWS, COLUMNS, method, ending, 1, commands):
        limit = MOST_COPIES * run["size_mib"] + BUFFERS_MIB if run["command"] == "fit" else MOST_FOR_PREDICT_MIB
        assert run["peak_mib"] - run["base_mib"] < limit, run
