"""Memory and seconds of deep training on many simulated rows.

    python benchmarks/deep_memory.py --rows 1000000 --columns 20 --epochs 1 --json

``peak_mib`` is the process's peak resident memory, ``data_mib`` that of X and y themselves.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import torch

from certgp import DeepFourierGP, DeepMercerGP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--head", choices=("mercer", "fourier"), default="fourier")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] + X[:, 2]) + 0.1 * rng.standard_normal(options.rows)
    model = (DeepMercerGP if options.head == "mercer" else DeepFourierGP)(max_iter=options.epochs, random_state=0)
    started, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    result = {
        "rows": options.rows,
        "columns": options.columns,
        "epochs": options.epochs,
        "head": options.head,
        "threads": options.threads,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        "data_mib": (X.nbytes + y.nbytes) / 2**20,
        "nlpd_per_row": model.nlpd(X[:10_000], y[:10_000]),
    }
    print(json.dumps(result, indent=1) if options.json else "\n".join(f"{k:14s} {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
