"""What a row costs in an epoch at N and at 4 N rows, measured in turns: is the time linear in N?

A time measured once on a machine with other load says little. Here the two sizes take turns, so that load that lasts
longer than a turn is in both, and what remains scatters over the rounds. A round is CPU time of an epoch per row at
both sizes; its exponent e is that of N in the time, e = 1 + log(cost at 4 N / cost at N) / log 4. Rows are simulated
and trained as in ``scaling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import torch

from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.sample_means import sample_mean
from certgp_paper.experiments.scaling import COLUMNS, METHODS, RANK, WARMING_ROWS, simulated_rows, time_fit

ROUNDS = 9
_TIMES = 4  # the larger size over the smaller one
_ROWS, _QUICK_ROWS = 50_000, 1_000
_EPOCHS = 2  # timed in a turn of the larger size; the smaller one has _TIMES as many


def _cells(quick: bool) -> list[Cell]:
    widths = {"electric": COLUMNS["electric"]} if quick else COLUMNS
    rows = _QUICK_ROWS if quick else _ROWS
    return [
        Cell("row-cost", {"width_of": name, "D": columns, "method": method, "rank": RANK, "N": rows})
        for name, columns in widths.items()
        for method in METHODS
    ]


def compute_cell(settings: Settings) -> Values:
    """CPU seconds of an epoch at both sizes, a pair for each round; odd rounds begin with the larger one."""
    method, rank = str(settings["method"]), whole_number(settings, "rank")
    n, columns = whole_number(settings, "N"), whole_number(settings, "D")
    time_fit(method, rank, *simulated_rows(WARMING_ROWS, columns), 1)  # compiles what is compiled
    sizes = {n: _EPOCHS * _TIMES, n * _TIMES: _EPOCHS}
    data = {size: simulated_rows(size, columns) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(ROUNDS):
        for size in sorted(sizes, reverse=bool(number % 2)):
            once, more = (time_fit(method, rank, *data[size], epochs)[1] for epochs in (1, 1 + sizes[size]))
            seconds[size].append((more - once) / sizes[size])
    few, many = seconds.values()
    return {"epoch_cpu_seconds": few, "epoch_cpu_seconds_more": many, "threads": torch.get_num_threads()}


def exponents(few: Sequence[float], many: Sequence[float]) -> list[float]:
    """Of the number of rows in the time, for each round."""
    return [math.log(b / a) / math.log(_TIMES) for a, b in zip(few, many, strict=True)]


def _rows(finished: Sequence[Finished]) -> list[Row]:
    return [_row(cell) for cell in finished]


def _row(cell: Finished) -> Row:
    few, many = cell["epoch_cpu_seconds"], cell["epoch_cpu_seconds_more"]
    found, n = exponents(few, many), int(cell["N"])
    each = sample_mean(found)
    return {
        **cell.cell.settings,
        "N_more": _TIMES * n,
        "microseconds_a_row": 1e6 * median(few) / n,
        "microseconds_a_row_more": 1e6 * median(many) / (_TIMES * n),
        "exponent": each.mean,
        "exponent_half_width": each.half_width,
        "exponent_median": median(found),
        "rounds": len(found),
        "threads": cell["threads"],
        **{f"exponent_round_{i}": value for i, value in enumerate(found)},
    }


ROW_COST = Experiment(
    "row-cost",
    "What a row costs in an epoch of the linear models at N and at 4 N rows, measured in turns (simulated rows)",
    _cells,
    compute_cell,
    _rows,
    score="",
)
