"""Certificates on real data against the dense exact GP with the same hyper-parameters.

    CERTGP_DATA=... python benchmarks/certificates.py --data elevators --models mercer fourier sparse --json
    CERTGP_DATA=... python benchmarks/certificates.py --data protein --models mercer --exact-solve --tol 0.01 --json

Rows are the training part of split 0 of benchmarks/accuracy.py (``--rows`` takes the first so many), X and y
standardised; certificates and errors are in units of the standard deviation of y. ``--no-dense`` leaves the oracle out
where N x N does not fit. Seconds are of this run, so only their ratios mean something.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings

import numpy as np
import scipy.linalg
import torch

from accuracy import MODELS
from certgp.engines import LocalEngine
from certgp.errors import CertgpWarning
from certgp.estimators.base import GPRegressor
from certgp.training import LowRankObjective
from certgp_paper.datasets.splits import standardised_split
from fitted import model_of, process_of, standardised_rows


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class DenseTruth:
    """KL(exact || model) and exact predictions by dense Cholesky factors, in place to spare memory."""

    def __init__(self, gp: GPRegressor, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> None:
        process, standardiser = process_of(gp), model_of(gp).standardiser
        inputs, new_inputs = (torch.from_numpy(standardiser.inputs(part)) for part in (X, X_test))
        s2, n = process.noise_variance, len(X)
        with torch.no_grad():
            rows, new = process.model.kernel_inputs(inputs), process.model.kernel_inputs(new_inputs)
            S1 = process.kernel(rows, rows).numpy()
            cross = process.kernel(rows, new).numpy()
        S1[np.diag_indices(n)] += s2
        # Tr(S2^-1 S1) = [Tr S1 - Tr(C^-1 Phi'S1 Phi)] / s2
        phi = process.features(inputs).numpy()
        C = phi.T @ phi + s2 * np.eye(phi.shape[1])
        trace = (np.trace(S1) - np.trace(scipy.linalg.solve(C, phi.T @ (S1 @ phi), assume_a="pos"))) / s2
        log_det_2 = np.linalg.slogdet(C)[1] + (n - phi.shape[1]) * np.log(s2)
        L = scipy.linalg.cholesky(S1, lower=True, overwrite_a=True, check_finite=False)
        log_det_1 = 2.0 * np.log(np.diag(L)).sum()
        self.kl = 0.5 * (trace - n + log_det_2 - log_det_1)
        half = scipy.linalg.solve_triangular(
            L, np.column_stack([standardiser.target(y), cross]), lower=True, check_finite=False
        )
        self.mean = standardiser.mean_to_user(half[:, 1:].T @ half[:, 0])
        prior = process.prior_variance(new_inputs).numpy()
        self.variance = standardiser.variance_to_user(prior - np.square(half[:, 1:]).sum(0))
        quadratic = float(half[:, 0] @ half[:, 0])
        self.log_evidence = model_of(gp).evidence_shift - 0.5 * (quadratic + log_det_1 + n * np.log(2.0 * np.pi))


def one_evaluation(gp: GPRegressor, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of one objective value and gradient at the fitted parameters."""
    objective = "elbo" if gp.certifies_itself else "marginal"
    model = process_of(gp).model.requires_grad_(True)
    target = LowRankObjective(model, standardised_rows(gp, X, y), LocalEngine(), objective)
    start = target.start()
    target.evaluate(start)
    begun = time.perf_counter()
    target.evaluate(start)
    seconds = time.perf_counter() - begun
    model.requires_grad_(False)
    return seconds


def time_call(function: object) -> tuple[object, float]:
    begun = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begun


def run(data: str, name: str, options: argparse.Namespace) -> dict[str, object]:
    X, X_test, y, _ = standardised_split(data, 0)
    X, y, X_test = X[: options.rows], y[: options.rows], X_test[: options.test_rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        gp, fit_seconds = time_call(lambda: MODELS[name](options.rank, 0).fit(X, y))
    log(f"{data} {name}: fitted in {fit_seconds:.0f} s")
    evaluation = one_evaluation(gp, X, y)
    free, free_seconds = time_call(gp.certify) if gp.certifies_itself else (None, 0.0)
    kl, kl_seconds = time_call(lambda: gp.certify(tol=options.kl_tol, max_reference_rank=options.max_reference_rank))
    log(f"{kl}\n  {kl_seconds:.1f} s, {kl_seconds / evaluation:.1f} evaluations")
    rows, rows_seconds = time_call(
        lambda: gp.certify(
            X_test,
            tol=options.tol,
            max_reference_rank=options.max_reference_rank,
            exact_solve=(lambda cost: log(str(cost)) or True) if options.exact_solve else False,
        )
    )
    log(f"{rows}\n  {rows_seconds:.1f} s")
    n = len(X)
    result: dict[str, object] = {
        "data": data,
        "model": name,
        "rank": gp.rank_,
        "rows": n,
        "test_rows": len(X_test),
        "evaluation_seconds": evaluation,
        "own_kl_per_row_upper": None if free is None else free.kl.upper / n,
        "own_evaluations": free_seconds / evaluation,
        "kl_per_row": [kl.kl.lower / n, kl.kl.upper / n],
        "kl_half_width_per_row": kl.kl.half_width / n,
        "kl_reference_rank": kl.evidence["reference_rank"],
        "kl_evaluations": kl_seconds / evaluation,
        "mean_error_median": float(np.median(rows.mean_error)),
        "mean_error_max": float(rows.mean_error.max()),
        "mean_resolution": rows.evidence["mean_resolution"],
        "row_theorem": rows.theorem,
        "row_reference_rank": rows.evidence["reference_rank"],
        "row_seconds": rows_seconds,
        "predictive_kl": [rows.predictive_kl.interval.lower, rows.predictive_kl.interval.upper],
    }
    if options.dense:
        truth, seconds = time_call(lambda: DenseTruth(gp, X, y, X_test))
        error = np.abs(gp.predict(X_test) - truth.mean)
        inside = (rows.mean_error_lower <= error + 1e-9) & (error <= rows.mean_error + 1e-9)
        bracket = (rows.variance_lower <= truth.variance + 1e-9) & (truth.variance <= rows.variance_upper + 1e-9)
        result |= {
            "dense_kl_per_row": truth.kl / n,
            "kl_holds": bool(kl.kl.lower - 1e-6 <= truth.kl <= kl.kl.upper + 1e-6),
            "evidence_holds": bool(kl.log_evidence.lower - 1e-6 <= truth.log_evidence <= kl.log_evidence.upper + 1e-6),
            "mean_rows_that_hold": float(inside.mean()),
            "variance_rows_that_hold": float(bracket.mean()),
            "dense_error_median": float(np.median(error)),
            "dense_error_max": float(error.max()),
            "dense_seconds": seconds,
        }
    log(json.dumps(result, indent=1))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators"])
    parser.add_argument("--models", nargs="+", default=["mercer", "fourier", "sparse"], choices=list(MODELS))
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--test-rows", type=int, default=None)
    parser.add_argument("--kl-tol", type=float, default=1e-5)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-reference-rank", type=int, default=3200)
    parser.add_argument("--exact-solve", action="store_true")
    parser.add_argument("--no-dense", dest="dense", action="store_false")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = [run(data, name, options) for data in options.data for name in options.models]
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
