"""The paper's deep table: DMGP and DFGP against sparse GPs, deep kernels, deep GPs and two-step networks.

[paper, "DNNs for feature extraction", tables of NLPD, training time and RMSE] Song, Buzz and Electric are not here:
their files are not part of the benchmark data at hand. How long each method is trained is in ``deep_methods``.
"""

from __future__ import annotations

from collections.abc import Sequence

from certgp.experiments.cells import Cell, Finished
from certgp.experiments.comparison import grouped
from certgp.experiments.deep_cells import METRICS, QUICK_DATA, SPLITS, compute, deep_cell, published_metrics, row_of
from certgp.experiments.deep_methods import method_names
from certgp.experiments.experiment import Experiment, Row
from certgp.experiments.results import split_column

DATA = ("elevators", "protein", "sarcos", "3droad")


def _cells(quick: bool) -> Sequence[Cell]:
    """Split by split, so that an unfinished run has every method."""
    if quick:
        return [deep_cell(QUICK_DATA, method, 0, quick=True) for method in method_names()]
    return [deep_cell(data, method, split) for data in DATA for split in SPLITS for method in method_names()]


def _rows(finished: Sequence[Finished]) -> Sequence[Row]:
    groups = grouped(finished, lambda cell: (cell["data"], cell["method"]))
    return [_row(cells) for cells in groups.values()]


def _row(cells: list[Finished]) -> Row:
    data, method = str(cells[0]["data"]), str(cells[0]["method"])
    return {**row_of({"data": data, "method": method}, cells, published_metrics(method, data)), **_by_split(cells)}


def _by_split(cells: Sequence[Finished]) -> Row:
    """Each split's figures, since methods run on different splits can be compared on those they share."""
    found = {int(cell["split"]): cell for cell in cells}
    return {
        split_column(metric, split): found[split][metric] if split in found else None
        for metric in METRICS
        for split in SPLITS
    }


TABLE_DEEP = Experiment(
    "table-deep",
    "deep and sparse models: NLPD, RMSE and training time (the paper's times are from 32 cores)",
    _cells,
    compute,
    _rows,
)
