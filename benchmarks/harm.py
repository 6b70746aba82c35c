"""Data on which a model can only lose: every estimator beside a constant predictor.

python benchmarks/harm.py [--traps noise "5 x 2"] [--models MercerGP] [--seeds 3] [--first-seed 10] [--out harm.jsonl]

The constant is the Gaussian with the mean and the standard deviation (n - 1) of the training targets. Scores are mean
negative log predictive densities of 500 fresh rows, in units of the standard deviation of their targets; the table has
means over seeds, and behind it the largest distance behind the constant of any seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

import certgp
from cells import Cells, scores, time_fit

Rows = tuple[np.ndarray, np.ndarray]
MODELS = {
    "MercerGP": {},
    "FourierGP": {},
    "SparseGP": {},
    "ExactGP": {},
    "LocalGP": {},
    "DeepFourierGP": {"max_iter": 60},
    "DeepMercerGP": {"max_iter": 60},
    "AutoGP": {},
}
_TEST_ROWS = 500


def wave(n: int, d: int, rng: np.random.Generator) -> Rows:
    """A smooth function of the first column with noise, and columns that say nothing."""
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(3.0 * X[:, 0]) + rng.normal(0.0, 0.5, n)


def noise(n: int, d: int, rng: np.random.Generator) -> Rows:
    """Targets that no column explains."""
    return rng.normal(size=(n, d)), rng.normal(size=n)


def copies(make: Callable[[int, int, np.random.Generator], Rows], n: int, d: int, rng: np.random.Generator) -> Rows:
    """Nine tenths of the rows are verbatim copies of the others."""
    X, y = make(n // 10, d, rng)
    picked = np.r_[np.arange(n // 10), rng.integers(n // 10, size=n - n // 10)]
    return X[picked], y[picked]


def sentinel(n: int, d: int, rng: np.random.Generator) -> Rows:
    """One value of a column stands for a missing one."""
    X, y = wave(n, d, rng)
    X[n // 2, 0] = 1e6
    return X, y


TRAPS: dict[str, tuple[Callable[[np.random.Generator], Rows], Callable[[np.random.Generator], Rows]]] = {
    "copies of a wave, 600 x 3": (lambda rng: copies(wave, 600, 3, rng), lambda rng: wave(_TEST_ROWS, 3, rng)),
    "copies of noise, 600 x 3": (lambda rng: copies(noise, 600, 3, rng), lambda rng: noise(_TEST_ROWS, 3, rng)),
    "noise, 60 x 20": (lambda rng: noise(60, 20, rng), lambda rng: noise(_TEST_ROWS, 20, rng)),
    "noise, 400 x 20": (lambda rng: noise(400, 20, rng), lambda rng: noise(_TEST_ROWS, 20, rng)),
    "wave, 2 x 2": (lambda rng: wave(2, 2, rng), lambda rng: wave(_TEST_ROWS, 2, rng)),
    "wave, 3 x 2": (lambda rng: wave(3, 2, rng), lambda rng: wave(_TEST_ROWS, 2, rng)),
    "wave, 5 x 2": (lambda rng: wave(5, 2, rng), lambda rng: wave(_TEST_ROWS, 2, rng)),
    "wave, 8 x 2": (lambda rng: wave(8, 2, rng), lambda rng: wave(_TEST_ROWS, 2, rng)),
    "wave, 15 x 2": (lambda rng: wave(15, 2, rng), lambda rng: wave(_TEST_ROWS, 2, rng)),
    "a sentinel of 1e6, 400 x 3": (lambda rng: sentinel(400, 3, rng), lambda rng: wave(_TEST_ROWS, 3, rng)),
    "wave, 60 x 20": (lambda rng: wave(60, 20, rng), lambda rng: wave(_TEST_ROWS, 20, rng)),
}


def constant_nlpd(y: np.ndarray, y_test: np.ndarray) -> float:
    """Of the Gaussian with the moments of y."""
    variance = y.var(ddof=1)
    return float(np.mean(0.5 * (np.log(2.0 * np.pi * variance) + (y_test - y.mean()) ** 2 / variance)))


def measure(model: str, trap: str, seed: int) -> dict[str, object]:
    """One fit and its scores."""
    train, test = TRAPS[trap]
    rng = np.random.default_rng(seed)
    (X, y), (X_test, y_test) = train(rng), test(rng)
    gp = getattr(certgp, model)(random_state=seed, **MODELS[model])
    seconds = time_fit(lambda: gp.fit(X, y))
    log_unit, key = np.log(y_test.std()), {"model": model, "trap": trap, "seed": seed}
    found = scores(gp, X_test, y_test)
    found["nlpd"] -= log_unit
    distinct = np.unique(y)
    return key | seconds | found | {"constant": constant_nlpd(distinct, y_test) - log_unit}


def table(cells: Cells, models: list[str], traps: list[str]) -> str:
    """Means over seeds as Markdown; in brackets the worst seed's distance behind the constant."""
    lines = ["| trap | constant | " + " | ".join(models) + " |", "|---" * (len(models) + 2) + "|"]
    for trap in traps:
        mine = [cell for cell in cells.all if cell["trap"] == trap]
        parts = [f"{np.mean([cell['constant'] for cell in mine]):.2f}"]
        for model in models:
            here = [cell for cell in mine if cell["model"] == model]
            behind = max(cell["nlpd"] - cell["constant"] for cell in here)
            parts.append(f"{np.mean([cell['nlpd'] for cell in here]):.2f} [{behind:+.2f}]")
        lines.append(f"| {trap} | " + " | ".join(parts) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traps", nargs="+", default=[""], help="parts of their names")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="the thresholds were set on seeds 0 and 1")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cells = Cells(options.out, ("model", "trap", "seed"))
    traps = [trap for trap in TRAPS if any(part in trap for part in options.traps)]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for model, trap, seed in product(options.models, traps, seeds):
        if (model, trap, seed) not in cells:
            cells.add(measure(model, trap, seed))
            cell = cells.all[-1]
            print(
                f"{model} {trap} seed {seed}: NLPD {cell['nlpd']:.3f} constant {cell['constant']:.3f} "
                f"coverage {cell['coverage95']:.2f} CPU {cell['cpu_seconds']:.1f} s",
                flush=True,
            )
    print(table(cells, options.models, traps))


if __name__ == "__main__":
    main()
