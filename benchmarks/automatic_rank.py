"""rank="auto": what it ends at, what it proves, and whether half the rank would have done.

CERTGP_DATA=... python benchmarks/automatic_rank.py --data 1d protein 3droad --json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings

import numpy as np
import torch

import certgp
from certgp.guarantees import certify_through, growing_references
from certgp_paper.datasets.splits import standardised_split
from fitted import process_of, standardised_rows, subject_of


def rows_of(name: str, rows: int | None) -> tuple[np.ndarray, np.ndarray, dict[str, object]]:
    if name == "1d":
        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, (rows or 20_000, 1))
        return X, np.sin(8 * X[:, 0]) + 0.2 * rng.standard_normal(len(X)), {}
    X, _, y, _ = standardised_split(name, 0)
    return X[:rows], y[:rows], {"projection": 3} if name == "protein" else {}


def run(name: str, options: argparse.Namespace) -> dict[str, object]:
    X, y, extra = rows_of(name, options.rows)
    gp = certgp.MercerGP(
        "auto",
        tolerance=options.tolerance,
        max_rank=options.max_rank,
        max_iter=options.max_iter,
        random_state=0,
        **extra,
    )
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gp.fit(X, y)
    certificate = gp.certify()
    result: dict[str, object] = {
        "data": name,
        "rows": len(X),
        "rank": gp.rank_,
        "kl_per_row": [certificate.kl.lower / len(X), certificate.kl.upper / len(X)],
        "theorem": certificate.theorem,
        "seconds": time.perf_counter() - begun,
        "warnings": sorted({str(w.message) for w in said if issubclass(w.category, certgp.errors.RankWarning)}),
    }
    if gp.rank_ > 1:
        half = process_of(gp).truncated(gp.rank_ // 2)
        problem = subject_of(gp, half).problem(standardised_rows(gp, X, y))
        for reference in growing_references(
            problem, 2 * gp.rank_, 4 * gp.rank_, lambda gap: True, np.random.default_rng(0)
        ):
            half_kl = certify_through(reference).kl
        result["kl_per_row_at_half_the_rank"] = [half_kl.lower / len(X), half_kl.upper / len(X)]
    print(json.dumps(result), file=sys.stderr, flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["1d", "protein", "3droad"])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--max-rank", type=int, default=512)
    parser.add_argument("--max-iter", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = [run(name, options) for name in options.data]
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
