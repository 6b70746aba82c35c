"""How far a figure moves where nothing but the seed does: the same rows, the same split, other starts.

Starts and index sets are chosen by held-out rows, and where two are nearly equal, rounding decides: another machine may
get another seed's result. So the spread over seeds on one split stands beside that over splits. The cells of the first
seed and of all splits are those of the linear tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import mean, stdev
from typing import Any

from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.comparison import group_by, values
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.linear_rows import METHODS, SPLITS
from certgp_paper.experiments.linear_table import FAMILY, compute_cell

DATA = ("elevators", "protein")
RANKS = (6, 10, 50)
SEEDS = range(5)  # the first is that of the tables: the number of the split


def _cells(quick: bool) -> list[Cell]:
    budget: dict[str, Any] = {"budget": "quick"} if quick else {}
    data, ranks = (DATA[:1], RANKS[:1]) if quick else (DATA, RANKS)
    seeds = SEEDS[:2] if quick else SEEDS
    cells = []
    for rank, name, method in product(ranks, data, METHODS):
        base = {"variant": "certgp", "data": name, "method": method, "rank": rank}
        cells += [Cell(FAMILY, base | {"split": split} | budget) for split in (SPLITS[:1] if quick else SPLITS)]
        cells += [Cell(FAMILY, base | {"split": 0, "seed": seed} | budget) for seed in seeds[1:]]
    return cells


def _rows(finished: Sequence[Finished]) -> list[Row]:
    groups = group_by(finished, lambda cell: (cell["data"], cell["method"], cell["rank"]))
    return [row for key, cells in groups.items() if (row := _row(*key, cells)) is not None]


def _row(data: str, method: str, rank: int, cells: Sequence[Finished]) -> Row | None:
    """None before other seeds are finished."""
    splits = [cell for cell in cells if "seed" not in cell.cell.settings]
    seeds = [cell for cell in cells if "seed" in cell.cell.settings or cell["split"] == 0]
    if len(seeds) < 2:
        return None
    nlpd = values(seeds, "nlpd")
    return {
        "data": data,
        "method": method,
        "rank": rank,
        "seeds": len(seeds),
        "nlpd_mean": mean(nlpd),
        "nlpd_least": min(nlpd),
        "nlpd_largest": max(nlpd),
        "sd_over_seeds": stdev(nlpd),
        "sd_over_splits": stdev(values(splits, "nlpd")) if len(splits) > 1 else None,
        "splits": len(splits),
    }


SEEDS_TABLE = Experiment(
    "seeds",
    "How far NLPD moves with the seed alone, on one split",
    _cells,
    compute_cell,
    _rows,
)
