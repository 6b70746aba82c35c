"""Cost of several outputs against one, in one run: seconds of the process for a fit, for predictions, for certificates.

python benchmarks/outputs.py --rows 10000 --outputs 20
python benchmarks/outputs.py --protein --rows 4000 --splits 3

"one" is the first output alone, "several" all of them, "missing" has two blocks of outputs observed at different rows.
``--protein`` compares accuracy instead: the target of protein and its last three columns as outputs of the first six,
with the same features for all, and with one fit for each.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from certgp import FourierGP, MercerGP, SparseGP
from certgp.errors import CertgpWarning

METHODS = {"mercer": MercerGP, "sparse": SparseGP, "fourier": FourierGP}
COLUMNS = 4


def draw(rows: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, 4) and smooth functions of them with noise (N, q)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS))
    directions = rng.standard_normal((COLUMNS, outputs))
    waves = np.sin(X @ directions + rng.uniform(0, 6, outputs)) + 0.3 * (X @ directions[:, ::-1])
    return X, waves + 0.2 * rng.standard_normal((rows, outputs))


def seconds(work: Callable[[], object]) -> tuple[float, Any]:
    """CPU seconds of this process, and what came out."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def measure(name: str, X: np.ndarray, Y: np.ndarray, options: argparse.Namespace) -> dict[str, object]:
    """Seconds of one fit and of what follows it."""
    gp = METHODS[name](options.rank, max_iter=options.max_iter, noise=options.noise, random_state=0)
    fit, _ = seconds(lambda: gp.fit(X, Y))
    new = X[: min(len(X), 5_000)]
    predict, _ = seconds(lambda: gp.predict(new, return_std=True))
    certify, _ = seconds(lambda: gp.certify()) if name != "fourier" else (float("nan"), None)
    return {"fit": fit, "iterations": gp.n_iter_, "predict": predict, "certify": certify}


def compare_split(
    name: str, X: np.ndarray, Y: np.ndarray, split: int, options: argparse.Namespace
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Test NLPD of each output with shared features and with its own, and the seconds of both."""
    order = np.random.default_rng(split).permutation(len(X))
    learned, held_out = order[: options.rows], order[options.rows : options.rows + 4_000]
    Z = (Y - Y[learned].mean(0)) / Y[learned].std(0)
    build = partial(METHODS[name], options.rank, max_iter=options.max_iter, noise=options.noise, random_state=0)
    shared, gp = seconds(lambda: build().fit(X[learned], Z[learned]))
    own, parts = seconds(lambda: [build().fit(X[learned], y) for y in Z[learned].T])
    alone = [each.nlpd(X[held_out], y) for each, y in zip(parts, Z[held_out].T, strict=True)]
    return gp.nlpd(X[held_out], Z[held_out]), np.array(alone), shared, own


def compare_on_protein(options: argparse.Namespace) -> None:
    """Mean test NLPD of four outputs, standardised, and seconds: features for all, and features of their own."""
    found = np.load(Path(os.environ["CERTGP_DATA"]) / "protein.npz")
    X, Y = found["X"][:, :6], np.column_stack([found["y"], found["X"][:, 6:9]])
    for name in options.methods:
        results = [compare_split(name, X, Y, split, options) for split in range(options.splits)]
        names = ("nlpd_shared", "nlpd_own", "seconds_shared", "seconds_own")
        means = {
            key: np.round(np.mean(each, 0), 3).tolist()
            for key, each in zip(names, zip(*results, strict=True), strict=True)
        }
        print(json.dumps({"method": name, **vars(options), **means}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--outputs", type=int, default=20)
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--max-iter", type=int, default=60)
    parser.add_argument("--noise", default="constant", choices=("constant", "auto"))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--protein", action="store_true")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CertgpWarning)
    if options.protein:
        compare_on_protein(options)
        return
    X, Y = draw(options.rows, options.outputs)
    missing = Y.copy()
    missing[: options.rows // 3, : options.outputs // 2] = np.nan
    METHODS[options.methods[0]](20, max_iter=2).fit(X[:500], Y[:500, 0])  # what a first call costs
    for name in options.methods:
        found = {
            "one": measure(name, X, Y[:, 0], options),
            "several": measure(name, X, Y, options),
            "missing": measure(name, X, missing, options),
        }
        ratios = {
            kind: {part: found[kind][part] / found["one"][part] for part in ("fit", "predict", "certify")}
            for kind in ("several", "missing")
        }
        print(json.dumps({"method": name, **vars(options), "seconds": found, "ratios": ratios}), flush=True)
        for kind, each in ratios.items():
            print(
                f"# {name:8s} {kind:8s} " + "  ".join(f"{part} x{value:.2f}" for part, value in each.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
