"""The exact GP on elevators, which the paper's text compares DMGP and DFGP with: trained on all rows, five splits.

[paper, "DNNs for feature extraction"] NLPD .377 (.024) in 53,550 (2,099) seconds, by GPflow on 32 cores.
``training.exact_gp`` trains here; the library's ``ExactProcess`` is conditioned on all rows in float64 and predicts.
"""

from __future__ import annotations

import math
import resource
import time
import warnings
from collections.abc import Sequence

import numpy as np
import torch

from certgp.errors import CertgpWarning
from certgp.estimators.scores import score_gaussian
from certgp.gp import ExactProcess
from certgp.gp.exact import check_exact_memory
from certgp.kernels import Gaussian
from certgp_paper.datasets.splits import Array, Split, standardised_split
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.published import EXACT_GP_ELEVATORS, EXACT_GP_SECONDS
from certgp_paper.training.exact_gp import SPARSE_RANK, train_exact_gp

FAMILY = "exact-gp"
SPLITS = range(5)
_QUICK_ROWS, _QUICK_RANK = 600, 20


def _cells(quick: bool) -> list[Cell]:
    if quick:
        return [Cell(FAMILY, {"data": "elevators", "split": 0, "protocol": "quick"})]
    return [Cell(FAMILY, {"data": "elevators", "split": split}) for split in SPLITS]


def compute_cell(settings: Settings) -> Values:
    """Train on one split, condition on all its rows, score its test rows."""
    split = whole_number(settings, "split")
    rows = standardised_split(str(settings["data"]), split, as_in_paper=True)
    started, cpu = time.perf_counter(), time.process_time()
    quick = settings.get("protocol") == "quick"
    if quick:
        rows = Split(rows.X[:_QUICK_ROWS], rows.X_test, rows.y[:_QUICK_ROWS], rows.y_test)
    check_exact_memory(len(rows.y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        found = train_exact_gp(rows.X, rows.y, split, _QUICK_RANK if quick else SPARSE_RANK)
    theta, unit = found.proposed, _conditioned(rows, found.proposed)
    if -_log_evidence(unit) / unit.n_rows > found.evaluated.value:  # the last step was none upwards
        theta, unit = found.evaluated.theta, _conditioned(rows, found.evaluated.theta)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    signal, ratio = _signal_variance(unit), unit.noise_variance
    mean, variance = unit.moments(torch.as_tensor(rows.X_test))
    scores = score_gaussian(mean.numpy(), (signal * (variance + ratio)).numpy(), rows.y_test)
    return {
        "nlpd": scores.nlpd,
        "rmse": scores.rmse,
        "coverage95": scores.coverage,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "threads": torch.get_num_threads(),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rows": len(rows.y),
        "log_evidence": _log_evidence(unit),
        "evidence_of_training": list(found.values),
        "steepest": float(np.abs(found.evaluated.gradient).max()),
        "stepped": bool(theta is found.proposed),
        "length_scale": np.exp(theta[:-1]).tolist(),
        "signal_variance": signal,
        "noise_variance": signal * ratio,
    }


def _conditioned(rows: Split, theta: Array) -> ExactProcess:
    """On all rows, at unit signal variance."""
    kernel = Gaussian(length_scale=np.exp(theta[:-1]))
    return ExactProcess(kernel, torch.as_tensor(rows.X), torch.as_tensor(rows.y), float(np.exp(theta[-1])))


def _signal_variance(unit: ExactProcess) -> float:
    """y'(R + g I)^-1 y / N, at which the evidence is largest."""
    return float(unit.half @ unit.half) / unit.n_rows


def _log_evidence(unit: ExactProcess) -> float:
    """log N(y | 0, sf2 S) from log N(y | 0, S) at the best sf2."""
    signal = _signal_variance(unit)
    return unit.log_evidence() + 0.5 * unit.n_rows * (signal - 1.0 - math.log(signal))


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
            "last_gain_per_row": cell["log_evidence"] / cell["rows"] + cell["evidence_of_training"][-1],
            "steepest": cell["steepest"],
        }
        for cell in finished
    ]


EXACT_GP = Experiment(
    "exact-gp",
    "The exact GP on elevators, trained and conditioned on all rows",
    _cells,
    compute_cell,
    _rows,
)
