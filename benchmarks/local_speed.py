"""How fast local GPs are: one term, one prediction, and a fit as the number of rows grows. One thread.

    python benchmarks/local_speed.py terms
    python benchmarks/local_speed.py predict --data 3droad
    python benchmarks/local_speed.py growth --rows 10000 100000 1000000 --columns 2 10

Terms are rows of 9 columns with random neighbours, the least of several repeats; ``growth`` fits simulated rows and
splits the CPU seconds of a fit into the search for neighbours and all else.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

import certgp
from certgp.gp import neighbours
from certgp.gp.conditionals import condition, radial_loss
from certgp.kernels import Matern32
from certgp_paper.datasets.splits import standardised_split


def least_seconds(function: Callable[[], object], repeats: int = 7) -> float:
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def terms(rows: int = 1_000, columns: int = 9) -> None:
    rng = np.random.default_rng(0)
    X, y = torch.from_numpy(rng.standard_normal((20_000, columns)) / 3), torch.from_numpy(rng.standard_normal(20_000))
    kernel, targets = Matern32(np.ones(columns)), np.arange(rows)
    for count in (15, 30, 60, 100):
        near = rng.integers(rows, 20_000, (rows, count))
        value = least_seconds(lambda near=near: condition(kernel, X[:rows], X, y, near, 0.1))
        gradient = least_seconds(lambda near=near: radial_loss(kernel, X, y, targets, near, 1.0, 0.1))
        print(f"{count:4d} neighbours: value {1e6 * value / rows:6.1f}, with gradient {1e6 * gradient / rows:6.1f} us")


def predict(data: str) -> None:
    X, X_test, y, _ = standardised_split(data, 0)
    model = certgp.LocalGP(kernel="matern32", metric="ard", max_iter=15, noise="constant", random_state=0).fit(X, y)
    process = model._model.process
    new = process.transform(torch.from_numpy(X_test[:2_000]))
    near = process.nearest(new)
    inputs, noise = process.inputs, process.noise_variance
    search = least_seconds(lambda: process.nearest(new), 3)
    seconds = least_seconds(lambda: condition(process.kernel, new, inputs, process.y, near, noise), 5)
    print(f"{data}, N = {len(y):,}: search {1e6 * search / len(new):.0f}, then {1e6 * seconds / len(new):.0f} us a row")


def growth(sizes: list[int], columns: list[int]) -> None:
    rng = np.random.default_rng(0)
    spent = 0.0
    nearest, build = neighbours.Neighbours.nearest, neighbours.Neighbours.__init__

    def timed(function: Callable) -> Callable:
        def run(*arguments, **named):
            nonlocal spent
            began = time.process_time()
            result = function(*arguments, **named)
            spent += time.process_time() - began
            return result

        return run

    neighbours.Neighbours.nearest, neighbours.Neighbours.__init__ = timed(nearest), timed(build)
    for d in columns:
        for n in sizes:
            X = rng.standard_normal((n, d)) * np.linspace(1.0, 0.3, d)
            y = np.sin(3.0 * X[:, 0]) + np.cos(2.0 * X[:, -1] * X[:, 0]) + 0.1 * rng.standard_normal(n)
            spent, began = 0.0, time.process_time()
            certgp.LocalGP(kernel="matern32", metric="ard", noise="constant", random_state=0).fit(X, y)
            total = time.process_time() - began
            print(
                f"{d:3d} columns, {n:9,} rows: search {spent:6.1f}, all else {total - spent:6.1f} CPU seconds",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["terms", "predict", "growth"])
    parser.add_argument("--data", default="3droad")
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", nargs="+", type=int, default=[2, 10])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.what == "terms":
        terms()
    elif arguments.what == "predict":
        predict(arguments.data)
    else:
        growth(arguments.rows, arguments.columns)


if __name__ == "__main__":
    main()
