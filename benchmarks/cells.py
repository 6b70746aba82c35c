"""What the accuracy benchmarks share: results as JSON lines that a later run goes on from, scores, seconds.

A cell is one result (data, model, split, ...) as a dictionary. A file of cells is only ever appended to; a line that a
crash cut off is dropped when the file is read again.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import psutil

from certgp.errors import CertgpWarning

Cell = dict[str, object]
MEASURES = ("nlpd", "rmse", "coverage95", "seconds", "cpu_seconds")


class Cells:
    """All cells of a run, those of an earlier one in the same file included."""

    def __init__(self, path: Path | None, keys: Sequence[str]) -> None:
        self.path, self.keys = path, keys
        self.all: list[Cell] = [] if path is None or not path.exists() else _whole_lines(path)

    def __contains__(self, key: tuple[object, ...]) -> bool:
        """Was a cell with these values of the keys measured (with seconds, not as a by-product of another)?"""
        return any("seconds" in cell and key == tuple(cell.get(k) for k in self.keys) for cell in self.all)

    def add(self, *cells: Cell) -> None:
        """Keep the cells of one fit, all or none."""
        self.all.extend(cells)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write("".join(json.dumps(cell) + "\n" for cell in cells))


def _whole_lines(path: Path) -> list[Cell]:
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


def time_fit(fit: Callable[[], object]) -> dict[str, float]:
    """Seconds of a fit by the clock, and on all cores: those of processes that it started count too."""
    started, cpu = time.perf_counter(), cpu_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        fit()
    return {"seconds": time.perf_counter() - started, "cpu_seconds": cpu_seconds() - cpu}


def cpu_seconds() -> float:
    """Of this process and its children; workers stay alive behind a fit, so nobody has to wait for them."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children())]
    return sum(each.user + each.system for each in times)


def scores(model, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of a fitted model on rows that it has not seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        lower, upper = model.predict_interval(X, 0.95)
        error, nlpd = model.predict(X) - y, model.nlpd(X, y)
    return {
        "nlpd": nlpd,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "max_error": float(np.abs(error).max()),
        "coverage95": float(np.mean((y >= lower) & (y <= upper))),
    }


def summary(cells: Iterable[Cell]) -> Cell:
    """Means and standard deviations over splits, of what was measured."""
    row: Cell = {}
    for measure in MEASURES:
        values = [float(str(cell[measure])) for cell in cells if measure in cell]
        row[measure] = mean(values) if values else None
        row[f"{measure}_sd"] = stdev(values) if len(values) > 1 else 0.0
    return row
