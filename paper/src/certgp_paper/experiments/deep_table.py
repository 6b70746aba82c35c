"""The paper's deep table: DMGP and DFGP against sparse GPs, deep kernels, deep GPs and two-step networks.

[paper, "DNNs for feature extraction", tables of NLPD, training time and RMSE] Elevators and protein, the paper's own
files, are always part of it; the other five sets where a file of the paper's size is in the data directory. How long
each method is trained is in ``deep_effort``.

DMGP and DFGP come in two variants: ``certgp``, this library's defaults, and ``paper``, the recipe of the paper's text
(``VARIANTS``). These two are also run on two splits of the linear table's other sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.datasets import dataset_info, local_dataset
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.comparison import group_by
from certgp_paper.experiments.deep_cells import (
    BY_SPLIT,
    OWN_VARIANT,
    PAPER_VARIANT,
    QUICK_DATA,
    SPLITS,
    compute,
    deep_cell,
    on_shared,
    published_metrics,
    row_of,
    shared_splits,
    variant_of,
)
from certgp_paper.experiments.deep_methods import method_names
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.results import split_columns
from certgp_paper.published import DEEP_DATA

VARIANTS = {
    PAPER_VARIANT: "DMGP and DFGP as the paper's text defines and trains them; what it leaves open, held-out training "
    "rows of elevators and protein chose; the network's rate on other sets was not tried there",
    OWN_VARIANT: "DMGP and DFGP with this library's defaults",
}
METHODS_BY_RECIPE = ("DMGP", "DFGP")
RATES_CHOSEN = _ALWAYS = ("elevators", "protein")  # the paper's own files; held-out rows of these chose rates
_BESIDE = (
    "sarcos",
    "bike",
    "superconduct",
    "keggdirected",
)  # at hand, though not the paper's files or not in its table
_SPLITS_BESIDE = range(2)


def data_of_table() -> list[str]:
    """The sets that are always there, then those of the paper's table that are at hand in the paper's size."""
    return [name for name in DEEP_DATA if name in _ALWAYS or _at_hand_in_full(name)]


def _at_hand_in_full(name: str) -> bool:
    info = dataset_info(name)
    return local_dataset(name, damaged_as_missing=True).shape == (info.n_rows, info.n_columns)


def _cells(quick: bool) -> Sequence[Cell]:
    """Split by split, so that an unfinished run has every method; the sets beside the paper's last."""
    if quick:
        return [*_recipe_cells(QUICK_DATA, 0, True), *_own_cells(QUICK_DATA, 0, method_names(), True)]
    table = data_of_table()
    cells = [cell for data in table for split in SPLITS for cell in _split(data, split, method_names())]
    beside = [name for name in _BESIDE if name not in table]
    return cells + [
        cell for data in beside for split in _SPLITS_BESIDE for cell in _split(data, split, METHODS_BY_RECIPE)
    ]


def _split(data: str, split: int, methods: Sequence[str]) -> list[Cell]:
    return [*_recipe_cells(data, split, False), *_own_cells(data, split, methods, False)]


def _recipe_cells(data: str, split: int, quick: bool) -> list[Cell]:
    return [deep_cell(data, method, split, quick=quick, variant=PAPER_VARIANT) for method in METHODS_BY_RECIPE]


def _own_cells(data: str, split: int, methods: Sequence[str], quick: bool) -> list[Cell]:
    return [deep_cell(data, method, split, quick=quick) for method in methods]


def _rows(finished: Sequence[Finished]) -> Sequence[Row]:
    rows: list[Row] = []
    for cells in group_by(finished, lambda cell: cell["data"]).values():
        methods = group_by(cells, lambda cell: (variant_of(cell), cell["method"]))
        shared = shared_splits(list(methods.values()))
        rows += [_row(own, shared) for own in methods.values()]
    return rows


def _row(cells: list[Finished], shared: Sequence[int]) -> Row:
    data, method = str(cells[0]["data"]), str(cells[0]["method"])
    variant = variant_of(cells[0]) if method in METHODS_BY_RECIPE else None  # the others come in one
    key = {"data": data, "variant": variant, "method": method}
    return {
        **row_of(key, cells, published_metrics(method, data)),
        **on_shared(cells, shared),
        **split_columns(cells, BY_SPLIT, SPLITS),
    }


TABLE_DEEP = Experiment(
    "table-deep",
    "Deep and sparse models: NLPD, RMSE and training time (the paper's times are from 32 cores)",
    _cells,
    compute,
    _rows,
    left_out=f"all data sets but {' and '.join(_ALWAYS)}, the paper's own files, unless a file of the paper's size is "
    "in the data directory: twelve methods on parts of the others would say nothing about the paper's figures. "
    f"{', '.join(_BESIDE)} have DMGP and DFGP alone, on two splits, to set the paper's recipe beside ours",
)
