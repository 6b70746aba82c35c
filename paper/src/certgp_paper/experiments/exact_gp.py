"""The exact GP on elevators, which the paper's text compares DMGP and DFGP with: trained on all rows, five splits.

[paper, "DNNs for feature extraction"] NLPD .377 (.024) in 53,550 (2,099) seconds, by GPflow on 32 cores.
``training.exact_gp`` trains here; the library's ``ExactProcess`` is conditioned on all rows in float64 and predicts.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence

import numpy as np
import torch

from certgp.estimators.scores import score_gaussian
from certgp.gp import ExactProcess
from certgp.gp.exact import check_exact_memory
from certgp.kernels import Gaussian
from certgp_paper.datasets.splits import Split, standardised_split
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.published import EXACT_GP_ELEVATORS, EXACT_GP_SECONDS
from certgp_paper.training.exact_gp import ExactHyperparameters, train_exact_gp

FAMILY = "exact-gp"
SPLITS = range(5)
_QUICK_ROWS = 600
_QUICK_STAGES = ((300, 20), (None, 3))


def _cells(quick: bool) -> list[Cell]:
    if quick:
        return [Cell(FAMILY, {"data": "elevators", "split": 0, "protocol": "quick"})]
    return [Cell(FAMILY, {"data": "elevators", "split": split}) for split in SPLITS]


def compute_cell(settings: Settings) -> Values:
    """Train on one split, condition on all its rows, score its test rows."""
    split = whole_number(settings, "split")
    rows = standardised_split(str(settings["data"]), split, as_in_paper=True)
    started, cpu = time.perf_counter(), time.process_time()
    if settings.get("protocol") == "quick":
        rows = Split(rows.X[:_QUICK_ROWS], rows.X_test, rows.y[:_QUICK_ROWS], rows.y_test)
        found = train_exact_gp(rows.X, rows.y, split, _QUICK_STAGES)
    else:
        check_exact_memory(len(rows.y))
        found = train_exact_gp(rows.X, rows.y, split)
    unit = ExactProcess(_kernel(found), torch.as_tensor(rows.X), torch.as_tensor(rows.y), found.noise_ratio)
    signal = float(unit.half @ unit.half) / unit.n_rows  # y'(R + g I)^-1 y / N, at which the evidence is largest
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    mean, variance = unit.moments(torch.as_tensor(rows.X_test))
    variance = signal * (variance + found.noise_ratio)
    scores = score_gaussian(mean.numpy(), variance.numpy(), rows.y_test)
    return {
        "nlpd": scores.nlpd,
        "rmse": scores.rmse,
        "coverage95": scores.coverage,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "threads": torch.get_num_threads(),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rows": len(rows.y),
        "log_evidence": _log_evidence(unit, signal),
        "evidence_of_training": list(found.values),
        "steepest": found.steepest,
        "length_scale": found.length_scale.tolist(),
        "signal_variance": signal,
        "noise_variance": signal * found.noise_ratio,
    }


def _kernel(found: ExactHyperparameters) -> Gaussian:
    """At unit signal variance, in float64."""
    return Gaussian(length_scale=found.length_scale)


def _log_evidence(unit: ExactProcess, signal: float) -> float:
    """log N(y | 0, sf2 S) from log N(y | 0, S) at sf2 = y'S^-1 y / N."""
    n = unit.n_rows
    return unit.log_evidence() + 0.5 * n * (signal - 1.0 - math.log(signal))


def _rows(finished: Sequence[Finished]) -> list[Row]:
    """A row per split."""
    shown = ("nlpd", "rmse", "coverage95", "seconds", "cpu_seconds", "threads", "peak_gb", "rows")
    return [
        {
            "data": cell["data"],
            "method": "exact GP",
            "split": cell["split"],
            **{key: cell[key] for key in shown},
            "paper_nlpd": EXACT_GP_ELEVATORS.mean,
            "paper_nlpd_sd": EXACT_GP_ELEVATORS.sd,
            "paper_seconds": EXACT_GP_SECONDS.mean,
            "evidence_per_row": float(cell["log_evidence"]) / int(cell["rows"]),
            "last_gain_per_row": _last_gain(cell["evidence_of_training"]),
            "steepest": cell["steepest"],
        }
        for cell in finished
    ]


def _last_gain(values: Sequence[float]) -> float | None:
    """By how much the last evaluation improved on the best one before it."""
    return float(np.min(values[:-1]) - values[-1]) if len(values) > 1 else None


EXACT_GP = Experiment(
    "exact-gp",
    "The exact GP on elevators, trained and conditioned on all rows",
    _cells,
    compute_cell,
    _rows,
)
