"""What verbatim repeated rows should count for, on keggdirected, where some rows are frequent in the population.

Held-out rows are training rows of a split; its test rows are never read. "once": distinct rows; "weights": distinct
rows, one that occurs m times with weight m / mean m; "all": rows as they are. A line of JSON for each fit, with NLPD,
RMSE and coverage of 95 % intervals, also for the held-out inputs that do not occur among the others ("new").

    python benchmarks/repeated_rows.py --models mercer fourier sparse local
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from certgp import FourierGP, LocalGP, MercerGP, SparseGP
from certgp.errors import CertgpWarning

HELD_OUT = 4_000
MODELS: dict[str, Callable[[str], Any]] = {
    "mercer": lambda noise: MercerGP(10, noise=noise, random_state=0, max_iter=100),
    "fourier": lambda noise: FourierGP(100, noise=noise, random_state=0, max_iter=100),
    "sparse": lambda noise: SparseGP(50, noise=noise, random_state=0, max_iter=100),
    "local": lambda noise: LocalGP(noise=noise, random_state=0),
}


def training_and_held_out_rows(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.load(path) as arrays:
        X, y = (arrays[name].astype(float) for name in arrays.files[:2])
    rng = np.random.default_rng(100)
    rows = rng.permutation(rng.permutation(len(X))[: int(0.9 * len(X))])
    y = y.ravel()
    y = (y - y[rows].mean()) / y[rows].std()
    kept, held_out = rows[:-HELD_OUT], rows[-HELD_OUT:]
    return X[kept], y[kept], X[held_out], y[held_out]


def ways_to_count(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows and weights of each way; rows with weights are never taken for copies by ``fit``."""
    _, first, counts = np.unique(np.column_stack([X, y]), axis=0, return_index=True, return_counts=True)
    return {
        "once": (X[first], y[first], np.ones(len(first))),
        "weights": (X[first], y[first], counts / counts.mean()),
        "all": (X, y, np.ones(len(X))),
    }


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    mean = model.predict(X)
    low, high = model.predict_interval(X, 0.95)
    return {
        "nlpd": float(model.nlpd(X, y)),
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "coverage_95": float(np.mean((low <= y) & (y <= high))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    X, y, X_held_out, y_held_out = training_and_held_out_rows(Path(os.environ["CERTGP_DATA"]) / "keggdirected.npz")
    known = {row.tobytes() for row in X}
    new = np.array([row.tobytes() not in known for row in X_held_out])
    warnings.simplefilter("ignore", CertgpWarning)
    for name in arguments.models:
        for noise in ("constant", "auto"):
            for way, (inputs, targets, weights) in ways_to_count(X, y).items():
                start = time.process_time()
                model = MODELS[name](noise).fit(inputs, targets, sample_weight=weights)
                cpu = time.process_time() - start
                every, unknown = scores(model, X_held_out, y_held_out), scores(model, X_held_out[new], y_held_out[new])
                line = {"model": name, "noise": noise, "rows": way, **every, "new": unknown, "cpu_seconds": cpu}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
