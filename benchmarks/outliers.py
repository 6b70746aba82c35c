"""likelihood="student" on data as they are and with gross outliers among the training targets.

CERTGP_DATA=... python benchmarks/outliers.py --data concrete airfoil --splits 3

A tenth of the training targets, drawn at random, is moved by 3 to 10 standard deviations; test rows stay as they are.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from certgp import CertgpWarning, SparseGP
from certgp.estimators.scores import score
from certgp_paper.datasets.splits import standardised_split

MODELS = {
    "gaussian, constant noise": {"noise": "constant"},
    "gaussian, noise='auto'": {},
    "student": {"likelihood": "student"},
}


def contaminate(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Targets of which a share is moved far away."""
    wrong = rng.random(len(y)) < share
    shift = rng.choice([-1.0, 1.0], len(y)) * rng.uniform(3.0, 10.0, len(y))
    return np.where(wrong, y + shift, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["concrete", "airfoil"])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--max-iter", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CertgpWarning)
    for name in options.data:
        for split in range(options.splits):
            X, X_test, y, y_test = standardised_split(name, split)
            for share in (0.0, 0.1):
                targets = contaminate(y, share, np.random.default_rng(split))
                for label, parameters in MODELS.items():
                    begun = time.process_time()
                    gp = SparseGP(options.rank, max_iter=options.max_iter, random_state=0, **parameters)
                    gp.fit(X, targets)
                    seconds, found = time.process_time() - begun, score(gp, X_test, y_test)
                    print(
                        f"{name} split {split} outliers {share:g} {label}: NLPD {found.nlpd:.3f} RMSE {found.rmse:.4f} "
                        f"coverage {found.coverage:.3f} CPU {seconds:.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
