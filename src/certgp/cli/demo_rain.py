"""The story of ``certgp demo``: rain on Earth, learned from 3,600 places and judged by 400 others."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.cli.training_data import DEFAULT_SHARE, split_rows
from certgp.data import PickedRows, read
from certgp.data.rows import Rows
from certgp.estimators import LocalGP
from certgp.estimators.held_out import make_card
from certgp.guarantees import Certificate, Explanation
from certgp.report import Card
from certgp.training import Callback

Array = NDArray[np.float64]
TARGET = "log10_rain"
SEED = 0
_STEP = 2.0  # degrees between points of the map


@dataclass(frozen=True, eq=False)
class RainMap:
    """The fitted model on a grid of the Earth."""

    longitude: Array  # (g,)
    latitude: Array  # (h,)
    mean: Array  # (h, g)
    std: Array  # (h, g), of a new measurement


@dataclass(frozen=True, eq=False)
class RainResult:
    """A fitted model, how good it is on rows it has not seen, and what is proven of it."""

    model: LocalGP
    train: Rows
    test: Rows
    seconds: float  # of the fit
    card: Card
    certificate: Certificate
    certify_seconds: float
    explained: Explanation


def run_rain(file: Path, n_rows: int | None = None, callbacks: tuple[Callback, ...] = ()) -> RainResult:
    """Fit nine tenths of the first ``n_rows`` places (or of all), as ``certgp fit`` would; judge, certify."""
    rows = read(file, target=TARGET)
    if n_rows is not None:
        rows = PickedRows(rows, np.arange(min(n_rows, rows.n_rows)))
    train, test = (PickedRows(rows, part) for part in split_rows(rows.n_rows, DEFAULT_SHARE, SEED))
    started = time.perf_counter()
    model = LocalGP(random_state=SEED, callbacks=callbacks).fit(train)
    fitted = time.perf_counter()
    model.target_name_ = TARGET
    certificate = model.certify()
    certified = time.perf_counter()
    card = make_card(model, test, train, SEED)
    explained = model.explain(certificate, coverage=card.model.coverage(0.95))
    return RainResult(model, train, test, fitted - started, card, certificate, certified - fitted, explained)


def predict_map(model: LocalGP) -> RainMap:
    """Mean and standard deviation of a measurement, between 60 degrees south and 70 degrees north."""
    longitude, latitude = np.arange(-180.0, 180.0, _STEP), np.arange(-60.0, 70.1, _STEP)
    along, up = np.meshgrid(longitude, latitude)
    grid = pa.table({"longitude": along.ravel(), "latitude": up.ravel()})
    mean, std = model.predict(grid, return_std=True)
    shape = len(latitude), len(longitude)
    return RainMap(longitude, latitude, mean.reshape(shape), std.reshape(shape))
