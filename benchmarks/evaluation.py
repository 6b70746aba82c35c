"""Cost of one objective value + gradient, as a ratio to the floor: the two matrix products that no method can avoid.

    python benchmarks/evaluation.py --rows 41157 --columns 9 --ranks 100 300 --json

The floor is a Gram product Phi'Phi and a cotangent product Phi G at the same size, interleaved with the evaluations in
one run, so that noise of the machine hits both. ``ratio_to_floor`` is the median over repetitions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FourierMap, MercerMap, NystromMap, optimal_indices
from certgp.features.spectral import orthogonal_design
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective
from certgp.transforms import Identity, Projection, principal_directions


def models(rows: Chunk, rank: int, rng: np.random.Generator) -> dict[str, tuple[LowRankModel, str]]:
    D = rows.X.shape[1]
    kernel = Gaussian(np.full(D, float(np.sqrt(D))))
    covariance = torch.cov(rows.X.mT, correction=0)
    d = min(6, D)
    projection = Projection(principal_directions(covariance, d), rows.X.mean(0), covariance)
    mercer = MercerMap(Gaussian(np.linspace(1.5, 3.0, d)), np.ones(d), rank)
    greedy = MercerMap(Gaussian(np.linspace(1.5, 3.0, d)), np.ones(d), rank)
    pool = optimal_indices(greedy.expansion.ratio.detach().numpy(), 3 * rank)
    greedy.set_indices(pool[np.sort(rng.permutation(len(pool))[:rank])])
    points = rows.X[torch.from_numpy(rng.permutation(len(rows.X))[:rank])]
    return {
        "fourier": (
            LowRankModel(Identity(D), FourierMap(kernel, orthogonal_design(kernel, rank // 2, D, rng))),
            "marginal",
        ),
        "mercer optimal set": (LowRankModel(projection, mercer), "elbo"),
        "mercer any set": (LowRankModel(projection, greedy), "elbo"),
        "nystrom": (LowRankModel(Identity(D), NystromMap(kernel, points)), "elbo"),
    }


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(n: int, D: int, rank: int, repeat: int) -> list[dict[str, float | str | int]]:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((n, D)))
    rows = Chunk(X, torch.sin(X[:, 0]) + 0.1 * torch.from_numpy(rng.standard_normal(n)))
    features = torch.from_numpy(rng.standard_normal((n, rank)))
    cotangent = torch.from_numpy(rng.standard_normal((rank, rank)))
    results = []
    for name, (model, objective) in models(rows, rank, rng).items():
        target = LowRankObjective(model, ChunkSource(rows), LocalEngine(), objective)
        start = target.start()
        target.evaluate(start)
        ratios, times = [], []
        for _ in range(repeat):
            floor = seconds(lambda: (features.mT @ features, features @ cotangent))
            cost = seconds(lambda: target.evaluate(start))  # noqa: B023 (called at once)
            ratios.append(cost / floor)
            times.append(cost)
        results.append(
            {
                "model": name,
                "rows": n,
                "columns": D,
                "rank": rank,
                "ratio_to_floor": statistics.median(ratios),
                "lowest": min(ratios),
                "highest": max(ratios),
                "seconds": statistics.median(times),
            }
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=41_157)
    parser.add_argument("--columns", type=int, default=9)
    parser.add_argument("--ranks", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = [r for rank in options.ranks for r in measure(options.rows, options.columns, rank, options.repeat)]
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for r in results:
        print(
            f"{r['model']:20s} rank {r['rank']:4d}  ratio_to_floor {r['ratio_to_floor']:.2f} "
            f"[{r['lowest']:.2f}, {r['highest']:.2f}]  {1e3 * float(r['seconds']):.0f} ms"
        )


if __name__ == "__main__":
    main()
