"""The paper's deep table: DMGP and DFGP against sparse GPs, deep kernels, deep GPs and two-step networks.

[paper, "DNNs for feature extraction", tables of NLPD, training time and RMSE] Elevators and protein, the paper's own
files, are always part of it; the other five sets where a file of the paper's size is in the data directory. How long
each method is trained is in ``deep_effort``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from certgp_paper.datasets import dataset_info, local_dataset
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.comparison import group_by, values
from certgp_paper.experiments.deep_cells import (
    METRICS,
    QUICK_DATA,
    SPLITS,
    compute,
    deep_cell,
    published_metrics,
    row_of,
)
from certgp_paper.experiments.deep_methods import method_names
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.results import split_column
from certgp_paper.published import DEEP_DATA

_ALWAYS = ("elevators", "protein")
_BY_SPLIT = (*METRICS, "cpu_seconds")


def data_of_table() -> list[str]:
    """The sets that are always there, then those of the paper's table that are at hand in the paper's size."""
    return [name for name in DEEP_DATA if name in _ALWAYS or _at_hand_in_full(name)]


def _at_hand_in_full(name: str) -> bool:
    info = dataset_info(name)
    return local_dataset(name, damaged_as_missing=True).shape == (info.n_rows, info.n_columns)


def _cells(quick: bool) -> Sequence[Cell]:
    """Split by split, so that an unfinished run has every method."""
    if quick:
        return [deep_cell(QUICK_DATA, method, 0, quick=True) for method in method_names()]
    return [deep_cell(data, method, split) for data in data_of_table() for split in SPLITS for method in method_names()]


def _rows(finished: Sequence[Finished]) -> Sequence[Row]:
    rows: list[Row] = []
    for cells in group_by(finished, lambda cell: cell["data"]).values():
        methods = group_by(cells, lambda cell: cell["method"])
        shared = _shared_splits(list(methods.values()))
        rows += [_row(own, shared) for own in methods.values()]
    return rows


def _shared_splits(methods: Sequence[Sequence[Finished]]) -> list[int]:
    """Splits that every method has: means over them may be set side by side."""
    return sorted(set.intersection(*({int(cell["split"]) for cell in cells} for cells in methods)))


def _row(cells: list[Finished], shared: Sequence[int]) -> Row:
    data, method = str(cells[0]["data"]), str(cells[0]["method"])
    return {
        **row_of({"data": data, "method": method}, cells, published_metrics(method, data)),
        **_on_shared([cell for cell in cells if cell["split"] in shared], shared),
        **_by_split(cells),
    }


def _on_shared(cells: Sequence[Finished], shared: Sequence[int]) -> Row:
    """Means over the splits that all methods of the data set have, for the figure; None where there are none."""
    row: dict[str, object] = {"shared_splits": " ".join(map(str, shared))}
    for metric in ("nlpd", "cpu_seconds"):
        found = values(cells, metric)
        row |= {
            f"{metric}_shared": mean(found) if found else None,
            f"{metric}_shared_sd": stdev(found) if len(found) > 1 else None,
        }
    return row


def _by_split(cells: Sequence[Finished]) -> Row:
    """Each split's figures, since methods run on different splits can be compared on those they share."""
    found = {int(cell["split"]): cell for cell in cells}
    return {
        split_column(metric, split): found[split][metric] if split in found else None
        for metric in _BY_SPLIT
        for split in SPLITS
    }


TABLE_DEEP = Experiment(
    "table-deep",
    "deep and sparse models: NLPD, RMSE and training time (the paper's times are from 32 cores)",
    _cells,
    compute,
    _rows,
    left_out=f"all data sets but {' and '.join(_ALWAYS)}, the paper's own files, unless a file of the paper's size is "
    "in the data directory: twelve methods on parts of the others would say nothing about the paper's figures",
)
