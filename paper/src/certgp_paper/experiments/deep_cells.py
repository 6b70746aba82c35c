"""One fit of one method on one split: the cell that deep table, sensitivity table and electric figure share.

Settings: data, method, split; optionally variant="paper" (``deep_methods.build_as_in_paper``), d and m (``build_at``),
fraction (of the training rows), and protocol="quick" for small models on few rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from certgp.errors import CertgpWarning
from certgp.estimators.scores import rmse
from certgp_paper.datasets import dataset_info
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.experiments.cells import Cell, Finished, Scalar, Settings, Values, whole_number
from certgp_paper.experiments.comparison import comparison_columns, values
from certgp_paper.experiments.deep_effort import FULL, QUICK
from certgp_paper.experiments.deep_methods import Method, build, build_as_in_paper, build_at
from certgp_paper.experiments.experiment import Row
from certgp_paper.published import Figure, published

FAMILY = "table-deep"
SPLITS = range(5)
QUICK_DATA = "sarcos"
QUICK_ROWS = 600
OWN_VARIANT, PAPER_VARIANT = "certgp", "paper"  # cells of the first do not name it
METRICS = {"nlpd": "nlpd", "rmse": "rmse", "seconds": "train_seconds"}  # names here and in the paper's tables
BY_SPLIT = (*METRICS, "cpu_seconds")  # that rows have for each split


def deep_cell(data: str, method: str, split: int, *, quick: bool = False, **options: Scalar) -> Cell:
    """The cell of these settings."""
    protocol: dict[str, Scalar] = {"protocol": "quick"} if quick else {}
    return Cell(FAMILY, {"data": data, "method": method, "split": split, **options, **protocol})


def variant_of(cell: Finished) -> str:
    """Which protocol trained it."""
    return str(cell.cell.settings.get("variant", OWN_VARIANT))


def compute(settings: Settings) -> Values:
    """Fit on the training rows, score on the test rows."""
    split = whole_number(settings, "split")
    rows = standardised_split(str(settings["data"]), split, as_in_paper=True)
    kept = _training_rows(settings, len(rows.y), split)
    model = _model(settings, len(kept), split)
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        model.fit(rows.X[kept], rows.y[kept])
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        prediction, nlpd = np.asarray(model.predict(rows.X_test)), model.nlpd(rows.X_test, rows.y_test)
    return {
        "nlpd": nlpd,
        "rmse": rmse(prediction, rows.y_test),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "threads": torch.get_num_threads(),
        "rows": len(kept),
        "n_rows": len(rows.y) + len(rows.y_test),
        "n_columns": rows.X.shape[1],
    }


def data_note(cell: Finished) -> str:
    """How the data of a cell differ from the paper's, or that it is the small version."""
    if cell.cell.settings.get("protocol") == "quick":
        return f"quick version: small models, {cell['rows']} rows"
    return dataset_info(str(cell["data"])).label(cell["n_rows"], cell["n_columns"])


def published_metrics(method: str, data: str) -> dict[str, Figure | None]:
    """The paper's figures of a method trained on all rows."""
    return {metric: published("deep", name, method, None, data) for metric, name in METRICS.items()}


def row_of(settings: Row, cells: Sequence[Finished], paper: Mapping[str, Figure | None]) -> Row:
    """A row of a table over splits: each metric beside the paper's, CPU seconds, and how the data differ."""
    row: dict[str, Any] = {**settings, "splits": len(cells), "rows": cells[0]["rows"]}
    for metric, figure in paper.items():
        row |= comparison_columns(metric, values(cells, metric), figure)
    notes = dict.fromkeys(filter(None, map(data_note, cells)))
    return row | {"cpu_seconds": mean(values(cells, "cpu_seconds")), "note": "; ".join(notes)}


def shared_splits(groups: Sequence[Sequence[Finished]]) -> list[int]:
    """Splits that every group of cells has: means over them may be set side by side."""
    return sorted(set.intersection(*({int(cell["split"]) for cell in cells} for cells in groups)))


def on_shared(cells: Sequence[Finished], shared: Sequence[int]) -> Row:
    """Means over the splits that all methods of a table have, for its figure; None where there are none."""
    own = [cell for cell in cells if cell["split"] in shared]
    row: dict[str, object] = {"shared_splits": " ".join(map(str, shared))}
    for metric in ("nlpd", "cpu_seconds"):
        found = values(own, metric)
        row |= {
            f"{metric}_shared": mean(found) if found else None,
            f"{metric}_shared_sd": stdev(found) if len(found) > 1 else None,
        }
    return row


def _training_rows(settings: Settings, n: int, split: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Positions of the training rows to use: all, a random fraction, or a few."""
    count = round(float(str(settings.get("fraction", 1.0))) * n)
    if settings.get("protocol") == "quick":
        count = min(count, round(QUICK_ROWS * count / n))
    if count == n:
        return np.arange(n)
    return np.sort(np.random.default_rng(split).permutation(n)[:count])


def _model(settings: Settings, n: int, split: int) -> Method:
    effort = QUICK if settings.get("protocol") == "quick" else FULL
    method = str(settings["method"])
    if "d" in settings:
        return build_at(method, whole_number(settings, "d"), whole_number(settings, "m"), split, effort)
    if settings.get("variant") == PAPER_VARIANT:
        return build_as_in_paper(method, str(settings["data"]), split, effort)
    return build(method, n, split, effort)
