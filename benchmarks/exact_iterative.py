"""The exact GP beyond dense memory: time, steps, proven error of 1,000 test means, bracket of variances, peak memory.

python benchmarks/exact_iterative.py                      elevators and protein, split 0, Matern 3/2
python benchmarks/exact_iterative.py --products           one product with the kernel matrix, compiled and by torch
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import train_test_split

import certgp
from certgp.gp.kernel_products import BLOCK, KernelMatrix
from certgp.kernels import Gaussian, Matern32

TEST_ROWS = 1_000


def fit(name: str, kernel: str, tolerance: float) -> None:
    """One fit and the certificate of its means and variances."""
    data = np.load(Path(os.environ["CERTGP_DATA"]) / f"{name}.npz")
    X, y = data["X"].astype(float), data["y"].astype(float).ravel()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=0)
    begun, cpu = time.perf_counter(), time.process_time()
    gp = certgp.ExactGP(kernel=kernel, solver="iterative", tolerance=tolerance, random_state=0).fit(X_train, y_train)
    fitted, fitted_cpu = time.perf_counter() - begun, time.process_time() - cpu
    rows = X_test[:TEST_ROWS]
    mean, deviation = gp.predict(X_test, return_std=True)
    begun, cpu = time.perf_counter(), time.process_time()
    certificate = gp.certify(rows)
    certified, certified_cpu = time.perf_counter() - begun, time.process_time() - cpu
    unit = y_train.std()
    noise = gp.noise_variance_
    lower, upper = certificate.variance_lower + noise, certificate.variance_upper + noise
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    errors = np.abs(mean - y_test)
    density = 0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * (errors / deviation) ** 2
    print(
        f"{name} N={len(y_train)} {kernel}: fit {fitted:.0f} s ({fitted_cpu:.0f} CPU s), certificate of {len(rows)} "
        f"rows {certified:.0f} s ({certified_cpu:.0f} CPU s), products {int(certificate.evidence['products'])}, largest "
        f"proven error of a mean {certificate.mean_error.max() / unit:.4f} sd of y, peak memory {memory:.2f} GiB"
    )
    print(
        f"  test RMSE {np.sqrt(np.mean(errors**2)) / unit:.4f} NLPD {np.mean(density) - np.log(unit):.4f}; proven "
        f"variance of y, lower / upper end: median {np.median(lower / upper):.3f}, 10 % quantile "
        f"{np.quantile(lower / upper, 0.1):.3f}; hyper-parameters by {min(gp.trials_, key=lambda t: t.score).name}"
    )
    print(f"  exact log evidence in [{certificate.log_evidence.lower:.1f}, {certificate.log_evidence.upper:.1f}]")


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
    parser.add_argument("--products", action="store_true")
    options = parser.parse_args()
    if options.products:
        products(6_000)
        return
    torch.set_num_threads(options.threads)
    for name in options.data:
        fit(name, options.kernel, options.tolerance)


if __name__ == "__main__":
    main()
