"""Time and memory of the linear models against the number of rows, on simulated rows of the paper's largest widths.

Song (90 columns), Buzz (77) and Electric (19) are in the paper's deep table; their files are not part of this. Rows are
drawn at random, which changes neither time nor memory of an epoch: every epoch of the paper's protocol is one exact
gradient of all rows, whatever they hold. One epoch and a few more are timed; the difference is the price of those, and
the rest is paid once. ``training_seconds`` is that price for the protocol's 300 epochs: a calculation, not a run.

Each cell has a process of its own, whose peak memory is that of the cell.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch

from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.published import published
from certgp_paper.training.paper_protocol import EPOCHS, fit_as_in_paper

COLUMNS = {"song": 90, "buzz": 77, "electric": 19}
TRAINING_ROWS = {"song": 463_810, "buzz": 524_925, "electric": 1_844_352}  # nine tenths of all
METHODS = ("SGPR", "FGP", "MGP")
SIZES = (10_000, 100_000, 500_000, 2_000_000)
RANK = 100
PAPER_RANK, PAPER_EPOCHS = 250, 100  # of SGPR in the paper's deep table
_QUICK_SIZES = (1_000, 4_000)
WARMING_ROWS, _TIMED_ROWS = 500, 400_000
_DIMENSION = 5  # of MGP's projection: the middle of the paper's 3 to 7


def _cells(quick: bool) -> list[Cell]:
    """Small sizes first; then SGPR at the size of the paper's deep table."""
    sizes = _QUICK_SIZES if quick else SIZES
    sets = ("electric",) if quick else tuple(COLUMNS)
    cells = [_cell(name, method, RANK, n) for n in sizes for name in sets for method in METHODS]
    return cells if quick else cells + [_cell(name, "SGPR", PAPER_RANK, n) for name, n in TRAINING_ROWS.items()]


def _cell(name: str, method: str, rank: int, n: int) -> Cell:
    return Cell("scaling", {"width_of": name, "D": COLUMNS[name], "method": method, "rank": rank, "N": n})


def compute_cell(settings: Settings) -> Values:
    """In a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, dict(settings), torch.get_num_threads()).result()


def measure(settings: Settings, threads: int) -> Values:
    """Seconds of one and of a few more epochs on simulated rows, and the peak memory of this process."""
    torch.set_num_threads(threads)
    method, rank, n = str(settings["method"]), whole_number(settings, "rank"), whole_number(settings, "N")
    time_fit(method, rank, *simulated_rows(WARMING_ROWS, whole_number(settings, "D")), 1)  # compiles what is compiled
    X, y = simulated_rows(n, whole_number(settings, "D"))
    more = min(max(_TIMED_ROWS // n, 2), 40)
    before = _peak_gb()
    one, one_cpu = time_fit(method, rank, X, y, 1)
    longer, longer_cpu = time_fit(method, rank, X, y, 1 + more)
    epoch_cpu = (longer_cpu - one_cpu) / more
    return {
        "epoch_seconds": (longer - one) / more,
        "epoch_cpu_seconds": epoch_cpu,
        "once_cpu_seconds": max(one_cpu - epoch_cpu, 0.0),
        "timed_epochs": more,
        "threads": threads,
        "rows_gb": (X.nbytes + y.nbytes) / 1e9,
        "peak_gb": _peak_gb(),
        "peak_before_gb": before,
    }


def simulated_rows(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, columns) of a normal law, and y: a smooth function of three columns with noise, standardised."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, columns))
    y = np.sin(X[:, 0]) + X[:, 1] * np.tanh(X[:, 2]) + 0.3 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def time_fit(method: str, rank: int, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[float, float]:
    """Wall and CPU seconds of a fit by the paper's protocol."""
    started, cpu = time.perf_counter(), time.process_time()
    fit_as_in_paper(method, rank, X, y, seed=0, epochs=epochs, dimension=_DIMENSION if method == "MGP" else None)
    return time.perf_counter() - started, time.process_time() - cpu


def _peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _rows(finished: Sequence[Finished]) -> list[Row]:
    return [_row(cell) for cell in finished]


def _row(cell: Finished) -> Row:
    name, method, n = str(cell["width_of"]), str(cell["method"]), int(cell["N"])
    in_paper = cell["rank"] == PAPER_RANK and n == TRAINING_ROWS[name]
    epochs = PAPER_EPOCHS if in_paper else EPOCHS
    paper = published("deep", "train_seconds", method, None, name) if in_paper else None
    return {
        "width_of": name,
        "D": cell["D"],
        "method": method,
        "rank": cell["rank"],
        "N": n,
        "epoch_cpu_seconds": cell["epoch_cpu_seconds"],
        "epochs": epochs,
        "training_seconds": cell["once_cpu_seconds"] + epochs * cell["epoch_cpu_seconds"],
        "paper_seconds": None if paper is None else paper.mean,
        "rows_gb": cell["rows_gb"],
        "peak_gb": cell["peak_gb"],
        "threads": cell["threads"],
    }


SCALING = Experiment(
    "scaling",
    "Time and memory of the linear models against the number of rows (simulated rows, one thread)",
    _cells,
    compute_cell,
    _rows,
    score="",  # times are measured anew or not at all
    left_out="the runs on Song, Buzz and Electric themselves: their rows are simulated, so there is no NLPD, and "
    f"training times are those of two epochs or more, scaled to the {EPOCHS} of the protocol",
)
