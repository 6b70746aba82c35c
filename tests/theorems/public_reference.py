"""Every estimator's certificates against the exact GP that a reader thinks of: ``ExactGP(kernel=gp.kernel_,
noise_variance=gp.noise_variance_, optimize=False)`` on the user's own rows, inside and far outside the training range.

python tests/theorems/public_reference.py --problems 1000
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from small_problems import INPUT_LAWS, Statement

import certgp
from certgp.errors import CertgpWarning, NotCertifiableError
from certgp.guarantees import Certificate
from helpers import dense_kernel, local_divergence

Array = np.ndarray
Build = Callable[[int, dict[str, Any]], Any]
STATIONARY = ("gaussian", "matern12", "matern32", "matern52")
ESTIMATORS: dict[str, tuple[Build, tuple[str, ...]]] = {  # how it is built from its rank, and for which kernels
    "mercer": (lambda rank, options: certgp.MercerGP(rank, projection=None, **options), ("gaussian",)),
    "sparse": (lambda rank, options: certgp.SparseGP(rank, **options), STATIONARY),
    "fourier": (lambda rank, options: certgp.FourierGP(rank, **options), STATIONARY),
    "fourier-as-they-are": (lambda rank, options: certgp.FourierGP(rank, winsorize=False, **options), STATIONARY),
    "local": (
        lambda rank, options: certgp.LocalGP(rank, train_neighbours=max(1, rank // 2), metric="ard", **options),
        STATIONARY,
    ),
    "auto": (
        lambda rank, options: certgp.AutoGP(rank, candidates=("sparse", "fourier"), max_iter=2, **options),
        ("gaussian",),
    ),
}
REQUESTS: tuple[dict[str, Any], ...] = ({}, {"reference_rank": 40}, {"tol": 0.01, "exact_solve": lambda cost: True})


@dataclass(frozen=True, eq=False)
class FittedProblem:
    """A fitted estimator, the rows it was conditioned on, rows to predict, and what is asked of ``certify``."""

    name: str
    gp: Any
    exact: Any  # the public reference
    X: Array
    y: Array
    X_new: Array
    request: dict[str, Any]


def draw_fitted(seed: int, names: tuple[str, ...] = tuple(ESTIMATORS)) -> FittedProblem:
    """The problem of a seed: random hyper-parameters that are kept (``auto`` learns its own); a part of the training
    rows comes by ``partial_fit`` and lies where the first ones do not, so that winsorised inputs move training rows.
    """
    rng = np.random.default_rng(seed)
    name = str(rng.choice(names))
    build, kernels = ESTIMATORS[name]
    n, d = int(rng.integers(10, 90)), int(rng.integers(1, 4))
    law = INPUT_LAWS[str(rng.choice(list(INPUT_LAWS)))]
    X = 10.0 ** rng.uniform(-2, 2) * law(rng, n, d) + rng.choice([0.0, 100.0])
    spread = X.std(0) + 1e-3
    more = X[rng.integers(0, n, n // 6)] + spread * rng.standard_normal((n // 6, d)) * rng.choice([0.1, 3.0])
    size = 10.0 ** rng.uniform(-2, 2)
    both = np.concatenate([X, more])
    y = size * (5.0 * rng.random() + np.sin((both / spread).sum(1)) + 0.3 * rng.standard_normal(len(both)))
    options = {"kernel": str(rng.choice(kernels)), "standardize": bool(rng.random() < 0.7), "random_state": seed}
    own = np.random.default_rng([seed, 1])
    options["warp"] = options["standardize"] and bool(own.random() < 0.3)
    far = X[rng.integers(0, n, 4)] + spread * rng.standard_normal((4, d)) * 10.0 ** rng.uniform(-0.5, 1.5, (4, 1))
    if name != "auto":
        options |= {
            "optimize": False,
            "length_scale": float((1.0 if options["warp"] else spread.mean()) * np.exp(rng.uniform(-1.5, 2.0))),
            "signal_variance": float(size**2 * np.exp(rng.uniform(-1.5, 1.5))),
            "noise_variance": float(size**2 * 10.0 ** rng.uniform(-3, 0.5)),
        }
    new = np.concatenate([far, both[rng.integers(0, len(both), 3)]])
    if rng.random() < 0.2:  # a column that says nothing, and then has other values
        X, more, new = np.c_[X, np.ones(n)], np.c_[more, rng.random(len(more))], np.c_[new, rng.random(len(new))]
        both = np.concatenate([X, more])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        gp = build(int(rng.integers(4, 40)), options).fit(X, y[:n]).partial_fit(more, y[n:])
        exact = certgp.ExactGP(
            kernel=gp.kernel_,
            noise_variance=gp.noise_variance_,
            optimize=False,
            standardize=options["standardize"],
            warp=options["warp"],
        )
        exact.fit(X, y[:n]).partial_fit(more, y[n:])
    return FittedProblem(name, gp, exact, both, y, new, REQUESTS[seed % 3])


def statements(problem: FittedProblem) -> Iterator[Statement]:
    """Everything that a certificate says of the exact GP, beside the truth."""
    gp, exact = problem.gp, problem.exact
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        found: Certificate = gp.certify(problem.X_new, rows=(problem.X, problem.y), **problem.request)
        mean, std = exact.predict(problem.X_new, return_std=True, include_noise=False)
        error = np.abs(gp.predict(problem.X_new) - mean)
    sf2, s2, size = float(exact.kernel_.signal_variance), exact.noise_variance_, np.abs(problem.y).max()
    condition = 1e-13 * (len(problem.X) * sf2 / s2 + 1.0)  # of the oracle's own solves
    for i in range(len(mean)):
        yield Statement(
            "mean", found.mean_error_lower[i], float(error[i]), found.mean_error[i], condition * (size + sf2**0.5)
        )
        ends = float(found.variance_lower[i]), float(found.variance_upper[i])
        yield Statement("variance", ends[0], float(std[i] ** 2), ends[1], condition * sf2)
    ends = found.log_evidence.lower, found.log_evidence.upper
    yield Statement("log evidence", ends[0], exact.log_marginal_likelihood(), ends[1], condition * len(problem.X))
    rounding = condition * len(problem.X)
    if isinstance(gp, certgp.LocalGP):
        yield Statement("KL", found.kl.lower, local_divergence(gp._fitted().process), found.kl.upper, rounding)
        return
    kl, reverse = dense_divergences(problem)
    yield Statement("KL", found.kl.lower, kl, found.kl.upper, rounding)
    yield Statement("reverse KL", found.reverse_kl.lower, reverse, found.reverse_kl.upper, rounding)


def dense_divergences(problem: FittedProblem) -> tuple[float, float]:
    """KL(exact || model) and KL(model || exact) on the training rows by dense linear algebra."""
    gp, kernel, s2 = problem.gp, problem.exact.kernel_, problem.exact.noise_variance_
    model = gp._fitted()
    rows = np.where(model.standardiser.ignored, 0.0, problem.X)
    if gp.warp_ is not None:
        rows = model.tensor(problem.X).numpy()  # the units of the kernel
    phi = model.standardiser.y_scale * model.process.features(model.tensor(problem.X)).numpy()
    eye = s2 * np.eye(len(rows))
    S1, S2 = dense_kernel(kernel, rows, rows) + eye, phi @ phi.T + eye
    return certgp.guarantees.gaussian_kl(S1, S2), certgp.guarantees.gaussian_kl(S2, S1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    checked, broken, said = Counter(), Counter(), 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.problems):
        problem = draw_fitted(seed, tuple(arguments.estimators))
        try:
            false = [each for each in statements(problem) if not each.slack >= 0.0]
        except NotCertifiableError as refusal:
            checked["refused"] += 1
            print(f"seed {seed} {problem.name} refused: {refusal}")
            continue
        checked[problem.name] += 1
        broken[problem.name] += bool(false)
        for each in false[: max(0, 20 - said)]:
            said += 1
            print(f"FALSE seed {seed} {problem.name} {problem.request}: {each}")
    print("certificates", dict(checked), "of which false", dict(broken))
    return 1 if sum(broken.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
