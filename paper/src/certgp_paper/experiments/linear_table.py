"""The paper's linear tables: NLPD and RMSE of SGPR, FGP and MGP at rank 6 to 300 on seven data sets.

Four variants, each labelled in every row; ``linear_rows.VARIANTS`` says what they are, ``paper_protocol`` has the
paper's.

Splits, test rows and units are those of the released code (``splits``). Inside a cell nothing is chosen on test rows.
The protocols themselves were settled with test scores of elevators and protein in view (``paper_protocol`` and
docs/decisions/0013).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from certgp.errors import CertgpWarning
from certgp.estimators import FourierGP, GPRegressor, MercerGP, SparseGP
from certgp.estimators.scores import score_gaussian
from certgp_paper.datasets import dataset_path
from certgp_paper.datasets.splits import Array, Split, standardised_split
from certgp_paper.experiments.cells import Cell, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment
from certgp_paper.experiments.linear_rows import DATA, METHODS, RANKS, SPLITS, linear_rows
from certgp_paper.training.paper_protocol import EPOCHS, PaperFit, fit_as_in_paper, fit_as_released

FAMILY = "table-linear"
_OWN_FILES = ("elevators", "protein")  # identical with the paper's
_LARGE = ("3droad",)  # 200,000 training rows: an hour of processor time for each split and variant
_QUICK_DATA = ("sarcos", "elevators", "yacht", "energy", "concrete", "airfoil", *DATA)  # the first one at hand
_QUICK_RANKS, _QUICK_ITERATIONS, _QUICK_EPOCHS = (6, 10), 12, 20
_ESTIMATORS: dict[str, Callable[..., GPRegressor]] = {"SGPR": SparseGP, "FGP": FourierGP, "MGP": MercerGP}


def linear_cells(quick: bool) -> list[Cell]:
    """All cells: the paper's own files first, then the released code's, then other data by variant; low ranks first."""
    if quick:
        data = next((name for name in _QUICK_DATA if dataset_path(name).exists()), _QUICK_DATA[0])
        wanted = product(("certgp", "paper"), [data], _QUICK_RANKS, [0], METHODS)
        return [Cell(FAMILY, _settings(*each) | {"budget": "quick"}) for each in wanted]
    return [Cell(FAMILY, _settings(*each)) for each in _wanted()]


def _wanted() -> Iterator[tuple[str, str, int, int, str]]:
    """Variant, data, rank, split, method."""
    for rank, data, variant in product(RANKS, _OWN_FILES, ("certgp", "paper")):
        yield from product([variant], [data], [rank], _splits(variant, data, rank), METHODS)
        yield from product(["likelihood"] if variant == "certgp" else [], [data], [rank], SPLITS, ["MGP"])
    for rank, data in product((rank for rank in RANKS if rank <= 10), _OWN_FILES):  # where text and figures differ
        yield from product(["released"], [data], [rank], SPLITS, ["FGP"])
        yield from product(["released"], [data], [rank], SPLITS[:2], ["MGP"])
    others = [name for name in DATA if name not in _OWN_FILES]
    for variant, data, rank in product(("certgp", "paper"), others, RANKS):
        yield from product([variant], [data], [rank], _splits(variant, data, rank), METHODS)


def _splits(variant: str, data: str, rank: int) -> range:
    """Which splits a row has: those that its hours of processor time allow."""
    if data not in _LARGE:
        return SPLITS
    return SPLITS[:2] if variant == "certgp" or rank <= 100 else SPLITS[:0]


def _settings(variant: str, data: str, rank: int, split: int, method: str) -> dict[str, Any]:
    return {"variant": variant, "data": data, "method": method, "rank": rank, "split": split}


@dataclass(frozen=True, eq=False)
class _Trained:
    """What every variant yields: moments of new observations, and what is worth knowing about the training."""

    predict: Callable[[Array], tuple[Array, Array]]
    facts: dict[str, Any]


def compute_cell(settings: Settings) -> Values:
    """Train on one split, score its test rows."""
    rows = standardised_split(str(settings["data"]), whole_number(settings, "split"), as_in_paper=True)
    train = _TRAINING[str(settings["variant"])]
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        trained = train(settings, rows)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        mean, variance = trained.predict(rows.X_test)
    scores = score_gaussian(mean, variance, rows.y_test)
    return {
        "nlpd": scores.nlpd,
        "rmse": scores.rmse,
        "coverage95": scores.coverage,
        "max_error": float(np.abs(mean - rows.y_test).max()),
        "train_seconds": seconds,
        "cpu_seconds": cpu,
        "threads": torch.get_num_threads(),
        "n_rows": len(rows.y) + len(rows.y_test),
        "n_columns": rows.X.shape[1],
        **trained.facts,
    }


def _train_estimator(settings: Settings, rows: Split, **options: str) -> _Trained:
    budget = {"max_iter": _QUICK_ITERATIONS} if _is_quick(settings) else {}
    estimator = _ESTIMATORS[str(settings["method"])]
    seed = settings.get("seed", settings["split"])
    # the paper's models have one noise level
    model = estimator(rank=settings["rank"], noise="constant", random_state=seed, **budget, **options)
    model.fit(rows.X, rows.y)

    def predict(X: Array) -> tuple[Array, Array]:
        mean, std = model.predict(X, return_std=True)
        return mean, np.square(std)

    facts = {"iterations": model.n_iter_, "reason": model.stop_reason_}
    return _Trained(predict, facts | (_projection_facts(model) if isinstance(model, MercerGP) else {}))


def _projection_facts(model: MercerGP) -> dict[str, Any]:
    try:
        dimension, rule = model.projection_.shape[1], "held-out training rows of a subsample: "
    except AttributeError:
        return {"projection": model.n_features_in_, "projection_rule": "all columns"}
    return {"projection": dimension, "projection_rule": rule + ", ".join(trial.name for trial in model.trials_)}


def _train_paper(settings: Settings, rows: Split) -> _Trained:
    return _of_paper(fit_as_in_paper(*_arguments(settings, rows), epochs=_epochs(settings)))


def _train_released(settings: Settings, rows: Split) -> _Trained:
    return _of_paper(fit_as_released(*_arguments(settings, rows), epochs=_epochs(settings)))


def _arguments(settings: Settings, rows: Split) -> tuple[str, int, Array, Array, int]:
    return str(settings["method"]), whole_number(settings, "rank"), rows.X, rows.y, whole_number(settings, "split")


def _of_paper(fit: PaperFit) -> _Trained:
    facts = {
        "iterations": fit.iterations,
        "reason": fit.reason,
        "signal_variance": fit.process.signal_variance,
        "noise_variance": fit.process.noise_variance,
    }
    if fit.dimension is not None:
        facts |= {"projection": fit.dimension, "projection_rule": fit.dimension_rule}
    return _Trained(fit.moments, facts)


def _is_quick(settings: Settings) -> bool:
    return settings.get("budget") == "quick"


def _epochs(settings: Settings) -> int:
    return _QUICK_EPOCHS if _is_quick(settings) else EPOCHS


_TRAINING: dict[str, Callable[[Settings, Split], _Trained]] = {
    "certgp": _train_estimator,
    "likelihood": partial(_train_estimator, objective="marginal", variance="lowrank"),
    "paper": _train_paper,
    "released": _train_released,
}


def _table(metric: str, title: str) -> Experiment:
    few = f"{', '.join(_LARGE)} has two splits, and rank 200 and 300 in our own variant only"
    left_out = f"{few}, since each takes an hour of processor time"
    rows = partial(linear_rows, metric)
    return Experiment(f"table-{metric}", title, linear_cells, compute_cell, rows, left_out=left_out)


TABLE_NLPD = _table("nlpd", "NLPD of SGPR, FGP and MGP at rank 6 to 300 (the paper's table of linear models)")
TABLE_RMSE = _table("rmse", "RMSE of SGPR, FGP and MGP at rank 6 to 300 (the same models, the paper's appendix)")
