"""What references of eigenfunctions and of inducing points leave of rows they were not chosen on.

    CERTGP_DATA=... python benchmarks/references.py --data elevators protein --models mercer sparse --ranks 200 800

The kernel and the transform are those of a short fit (rank 50, 40 iterations; split 0). Both maps are chosen on 4,000
training rows (half of them where there are fewer) and judged by as many others, without inducing points on single
far-out rows. ``half_width`` is what a reference that leaves so much of every row would add to and take from the
divergence, per row: gap sf2 / (2 s2).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
import torch

from accuracy import MODELS
from certgp.errors import CertgpWarning
from certgp.features import FeatureMap, NystromMap, data_mercer_map, greedy_inducing_points, mean_gap
from certgp.kernels import Kernel
from certgp_paper.datasets.splits import standardised_split
from fitted import model_of, process_of

ROWS, JITTER = 4_000, 1e-8


def eigenfunctions(kernel: Kernel, inputs: torch.Tensor, rank: int) -> FeatureMap:
    return data_mercer_map(kernel, inputs[: len(inputs) // 2], rank)


def inducing_points(kernel: Kernel, inputs: torch.Tensor, rank: int) -> FeatureMap:
    return NystromMap(kernel, greedy_inducing_points(kernel, inputs, rank, tolerance=JITTER), jitter=JITTER)


def main() -> None:
    """Print one line per data set, model and rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein", "superconduct", "bike"])
    parser.add_argument("--models", nargs="+", default=["mercer", "sparse"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[200, 800, 1600])
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for data in arguments.data:
        for model in arguments.models:
            report(data, model, arguments.ranks, arguments.json)


def report(data: str, model: str, ranks: list[int], as_json: bool) -> None:
    """All ranks of one fit."""
    rows = standardised_split(data, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        gp = MODELS[model](50, 0).set_params(max_iter=40).fit(rows.X, rows.y)
    process, standardiser = process_of(gp), model_of(gp).standardiser
    order, count = np.random.default_rng(0).permutation(len(rows.X)), min(ROWS, len(rows.X) // 2)
    with torch.no_grad():
        chosen_on, judges = (
            process.model.kernel_inputs(torch.from_numpy(standardiser.inputs(rows.X[part])))
            for part in (order[:count], order[count : 2 * count])
        )
        kernel = process.kernel.with_signal_variance(1.0)
        for rank in ranks:
            found: dict[str, object] = {"data": data, "model": model, "columns": judges.shape[1], "rank": rank}
            for build in (eigenfunctions, inducing_points):
                started = time.perf_counter()
                features = build(kernel, chosen_on, rank)
                seconds = time.perf_counter() - started
                gap = max(mean_gap(features, judges), 0.0)
                found[build.__name__] = {
                    "gap": gap,
                    "rounding": features.rounding(),
                    "half_width": 0.5 * gap * process.signal_variance / process.noise_variance,
                    "seconds": seconds,
                }
            print(json.dumps(found) if as_json else as_text(found), flush=True)


def as_text(found: dict) -> str:
    """One line to read."""
    halves = " ".join(
        f"{name} {found[name]['half_width']:.2e} ({found[name]['seconds']:.1f} s)"
        for name in ("eigenfunctions", "inducing_points")
    )
    return f"{found['data']:13s}{found['model']:8s}d = {found['columns']:<3d} rank {found['rank']:<5d} {halves}"


if __name__ == "__main__":
    main()
