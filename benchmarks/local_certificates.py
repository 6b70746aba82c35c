"""Certificates of local GPs at full size: KL(exact || local) from both sides, and exact predictions.

    CERTGP_DATA=... python benchmarks/local_certificates.py --data protein 3droad --json

Training rows of split 0 of benchmarks/accuracy.py (``--rows`` takes the first so many), X and y standardised; Matern
3/2 with length-scales by the local likelihood of 4 rounds of 2,000 rows and the noise on 8,000. Seconds are CPU seconds
of one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial

import numpy as np
import torch

from certgp.data import Chunk
from certgp.gp.local import LocalProcess
from certgp.guarantees.local_certificate import LocalProblem, bound_predictions, bracket_probes
from certgp.guarantees.local_rows import KernelCovariance
from certgp.guarantees.local_sample import bracket_by_sample
from certgp.kernels import Matern32
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.local import LocalObjective, ScaledMetric, fit_noise, pick_targets, profiled_loss
from certgp_paper.datasets.splits import standardised_split


def fit(rows: Chunk, neighbours: int) -> LocalProcess:
    """Length-scales, signal variance and noise by the leave-one-out local likelihood."""
    n, D = rows.X.shape
    rng = np.random.default_rng(0)
    metric = ScaledMetric(Matern32(np.full(D, np.sqrt(D))), D, 0.1)
    for _ in range(4):
        some = np.sort(rng.choice(n, min(2_000, n), replace=False))
        minimise(LocalObjective(metric, pick_targets(metric, rows, some, neighbours)), max_iter=15, rank=0)
    some = np.sort(rng.choice(n, min(8_000, n), replace=False))
    fit_noise(metric, partial(profiled_loss, metric, pick_targets(metric, rows, some, neighbours)))
    transform, kernel = metric.result()
    return LocalProcess(transform, kernel, rows.X, rows.y, metric.signal * metric.ratio, 100, neighbours)


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(1)
    X, X_test, y, _ = standardised_split(name, 0)
    rows = Chunk(torch.from_numpy(X[: options.rows]), torch.from_numpy(y[: options.rows]))
    times = [time.process_time()]
    process = fit(rows, options.neighbours)
    times.append(time.process_time())
    problem = LocalProblem.of(process)
    times.append(time.process_time())
    kl, dual, products = bracket_probes(problem, options.delta, options.probes, np.random.default_rng(1))
    times.append(time.process_time())
    n = process.n_rows
    new = torch.from_numpy(X_test[np.random.default_rng(2).permutation(len(X_test))[: options.test_rows]])
    bounds, error = bound_predictions(problem, new, dual)
    times.append(time.process_time())
    mean, variance = (part.numpy() for part in process.moments(new))
    ratio = bounds.lower / np.maximum(bounds.upper, 1e-300)
    seconds = np.diff(times).round(1).tolist()
    sampled = None
    if options.sampled_rows:
        covariance, inputs, near = KernelCovariance(process.kernel, process.inputs), process.inputs, 400
        found = bracket_by_sample(
            problem.own, problem.larger, covariance, inputs, process.index.points, near, options.sampled_rows,
            options.delta, np.random.default_rng(0),
        )  # fmt: skip
        sampled = [found.lower / n, found.upper / n]
    return {
        "data": name,
        "rows": n,
        "neighbours": options.neighbours,
        "signal_variance": process.signal_variance,
        "noise_variance": process.noise_variance,
        "kl": [kl.lower, kl.upper],
        "kl_per_row": [kl.lower / n, kl.upper / n],
        "upper_over_lower": kl.upper / kl.lower if kl.lower else None,
        "confidence": 1.0 - options.delta,
        "kl_per_row_by_sampled_rows": sampled,
        "probes": options.probes,
        "products": products,
        "rounding_of_kernel": problem.covariance.relative,
        "test_rows": len(new),
        "exact_means_known_to": {"median": float(np.median(error)), "max": float(error.max())},
        "distance_of_local_means": float(np.abs(mean - bounds.mean).max()),
        "variance_lower_over_upper": {
            "median": float(np.median(ratio)), "10%": float(np.quantile(ratio, 0.1)), "min": float(ratio.min())
        },
        "local_variance_over_upper": float(np.median(variance / np.maximum(bounds.upper, 1e-300))),
        "seconds": dict(zip(("fit", "factors", "divergence", "test rows"), seconds, strict=True)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["protein", "3droad"])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--neighbours", type=int, default=30)
    parser.add_argument("--probes", type=int, default=8)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--test-rows", type=int, default=100)
    parser.add_argument("--sampled-rows", type=int, default=0, help="bound the divergence by so many rows too (V3+)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name in options.data:
        found = measure(name, options)
        if options.json:
            print(json.dumps(found), flush=True)
        else:
            lower, upper = found["kl_per_row"]  # type: ignore[misc]
            print(
                f"{name}: {found['rows']} rows, KL per row in [{lower:.3g}, {upper:.3g}] "
                f"(ratio {found['upper_over_lower']}) with probability {found['confidence']:g}; "
                f"{found['products']} products, {found['seconds']} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
