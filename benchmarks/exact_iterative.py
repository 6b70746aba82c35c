"""The exact GP beyond dense memory: time, steps, proven error of 1,000 test means, bracket of variances, peak memory.

python benchmarks/exact_iterative.py                      elevators and protein, split 0, Matern 3/2
python benchmarks/exact_iterative.py --products           one product with the kernel matrix, compiled and by torch
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import train_test_split

import certgp
from certgp.gp.kernel_products import BLOCK, KernelMatrix
from certgp.kernels import Gaussian, Matern32

TEST_ROWS = 1_000


def rows(name: str) -> list[np.ndarray]:
    """Training and test rows of split 0."""
    data = np.load(Path(os.environ["CERTGP_DATA"]) / f"{name}.npz")
    X, y = data["X"].astype(float), data["y"].astype(float).ravel()
    split: list[np.ndarray] = train_test_split(X, y, test_size=0.1, random_state=0)
    return split


def fit(name: str, kernel: str, tolerance: float, path: Path) -> None:
    """One fit, kept in a file."""
    X_train, _, y_train, _ = rows(name)
    begun, cpu = time.perf_counter(), time.process_time()
    gp = certgp.ExactGP(kernel=kernel, solver="iterative", tolerance=tolerance, noise="constant", random_state=0).fit(
        X_train, y_train
    )
    spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    chosen = min(gp.trials_, key=lambda trial: trial.score).name
    print(
        f"{name} N={len(y_train)} {kernel}: fit {spent:.0f} s ({cpu:.0f} CPU s), hyper-parameters by {chosen},", end=" "
    )
    print(f"peak memory {memory():.2f} GiB", flush=True)
    gp.save(path, include_training_data=True)


def certify(name: str, path: Path) -> None:
    """The certificate of 1,000 test rows."""
    _, X_test, y_train, y_test = rows(name)
    gp, unit = certgp.load(path), y_train.std()
    mean, deviation = gp.predict(X_test, return_std=True)
    begun, cpu = time.perf_counter(), time.process_time()
    found = gp.certify(X_test[:TEST_ROWS])
    spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    errors = np.abs(mean - y_test)
    density = 0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * (errors / deviation) ** 2
    ratio = (found.variance_lower + gp.noise_variance_) / (found.variance_upper + gp.noise_variance_)
    steps, largest = int(found.evidence["products"]), found.mean_error.max() / unit
    middle, low = np.median(ratio), np.quantile(ratio, 0.1)
    print(f"  certificate of {TEST_ROWS} rows {spent:.0f} s ({cpu:.0f} CPU s), products {steps},", end=" ")
    print(f"largest proven error of a mean {largest:.4f} sd of y, peak memory {memory():.2f} GiB")
    print(f"  test RMSE {np.sqrt(np.mean(errors**2)) / unit:.4f} NLPD {np.mean(density) - np.log(unit):.4f};", end=" ")
    print(f"proven variance of y, lower / upper end: median {middle:.3f}, 10 % quantile {low:.3f};", end=" ")
    print(f"exact log evidence in [{found.log_evidence.lower:.1f}, {found.log_evidence.upper:.1f}]", flush=True)


def memory() -> float:
    """Largest resident set so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def products(n: int) -> None:
    """CPU time per kernel value of a product, on one thread."""
    torch.set_num_threads(1)
    for d in (2, 9, 18):
        X = torch.from_numpy(np.random.default_rng(0).standard_normal((n, d)))
        for kernel in (Gaussian(np.ones(d)), Matern32(np.ones(d))):
            matrix, cells = KernelMatrix(kernel, X), []
            for dtype in (torch.float64, torch.float32):
                for count in (1, 8):
                    V = torch.ones((n, count), dtype=torch.float64)
                    cells.append((f"{str(dtype)[6:]} x{count}", _seconds(lambda: matrix.multiply(V, dtype))))  # noqa: B023
            V = torch.ones((BLOCK, 1), dtype=torch.float64)
            own = _seconds(lambda: kernel(X[:BLOCK], X[:BLOCK]) @ V) * 0.5 * (n / BLOCK) ** 2  # noqa: B023
            cells.append(("torch float64", own))
            values = 0.5 * n * n
            shown = ", ".join(f"{name} {1e9 * seconds / values:.2f}" for name, seconds in cells)
            print(f"{kernel.name} D={d}: ns per kernel value: {shown}")


def _seconds(work) -> float:  # type: ignore[no-untyped-def]
    work()
    times = []
    for _ in range(3):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--kernel", default="matern32")
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()), help="where fits are kept")
    parser.add_argument("--fit-only", action="store_true")
    parser.add_argument("--products", action="store_true")
    options = parser.parse_args()
    if options.products:
        products(6_000)
        return
    torch.set_num_threads(options.threads)
    for name in options.data:
        path = options.models / f"{name}.gp"
        if not path.exists():
            fit(name, options.kernel, options.tolerance, path)
        if not options.fit_only:
            certify(name, path)


if __name__ == "__main__":
    main()
