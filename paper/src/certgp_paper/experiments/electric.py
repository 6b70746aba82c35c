"""NLPD and training time against the number of training points, on the largest data set at hand and on protein.

[paper, figure of the Electric data] The paper shows Electric (1.8 million training rows); where its file is not in the
data directory, the one there with the most rows stands in. A split of it takes an hour of CPU, so it has one; protein,
the largest of the paper's own files, has five, on which claims can be judged. DMGP and DFGP learn from fractions of
the training rows, the baselines (dashed in the figure) from all of them; these cells are the ones of the deep table.
"""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.datasets import local_dataset
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.comparison import group_by
from certgp_paper.experiments.deep_cells import (
    BY_SPLIT,
    METRICS,
    QUICK_DATA,
    SPLITS,
    compute,
    deep_cell,
    on_shared,
    published_metrics,
    row_of,
    shared_splits,
)
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.results import split_columns
from certgp_paper.published import DEEP_DATA

METHODS = ("DFGP", "DMGP")
BASELINES = ("SVIGP", "SGPR", "DKL", "RFEDGP", "DNN+S")
FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.5)
_ON_ALL_SPLITS = "protein"
_QUICK_FRACTIONS = (0.25, 0.5)
_QUICK_BASELINES = ("SGPR", "DNN+S")


def largest_at_hand() -> str:
    """The set of the paper's deep table whose file here has the most rows; the paper's where there is none."""
    shapes = {name: local_dataset(name, damaged_as_missing=True).shape for name in DEEP_DATA}
    rows = {name: shape[0] for name, shape in shapes.items() if shape is not None}
    return max(rows, key=lambda name: rows[name]) if rows else "electric"


def _cells(quick: bool) -> Sequence[Cell]:
    """Split by split, so that an unfinished run has every method."""
    if quick:
        return _cells_of_split(QUICK_DATA, 0, quick)
    largest = largest_at_hand()
    alone = [] if largest == _ON_ALL_SPLITS else _cells_of_split(largest, 0, quick)
    return alone + [cell for split in SPLITS for cell in _cells_of_split(_ON_ALL_SPLITS, split, quick)]


def _cells_of_split(data: str, split: int, quick: bool) -> list[Cell]:
    parts = [
        deep_cell(data, method, split, quick=quick, fraction=fraction)
        for fraction in (_QUICK_FRACTIONS if quick else FRACTIONS)
        for method in METHODS
    ]
    whole = (*METHODS, *(_QUICK_BASELINES if quick else BASELINES))
    return parts + [deep_cell(data, method, split, quick=quick) for method in whole]


def _rows(finished: Sequence[Finished]) -> Sequence[Row]:
    """A row for each data set, method and fraction, with a column for each split."""
    rows: list[Row] = []
    for some in group_by(finished, lambda cell: cell["data"]).values():
        groups = list(group_by(some, lambda cell: (cell["method"], _fraction(cell))).values())
        shared = shared_splits(groups)
        rows += [_row(cells, shared) for cells in groups]
    return rows


def _fraction(cell: Finished) -> float:
    return float(str(cell.cell.settings.get("fraction", 1.0)))


def _row(cells: Sequence[Finished], shared: Sequence[int]) -> Row:
    data, method, fraction = str(cells[0]["data"]), str(cells[0]["method"]), _fraction(cells[0])
    key = {"data": data, "method": method, "fraction": fraction, "baseline": method not in METHODS}
    paper = published_metrics(method, data) if fraction == 1.0 else dict.fromkeys(METRICS)
    return {**row_of(key, cells, paper), **on_shared(cells, shared), **split_columns(cells, BY_SPLIT, SPLITS)}


ELECTRIC = Experiment(
    "electric",
    "NLPD and training time against the number of training points",
    _cells,
    compute,
    _rows,
)
