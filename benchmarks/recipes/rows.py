"""Rows of the recipes, and the check that an engine gives the numbers of one process."""

from __future__ import annotations

import numpy as np

import certgp

N = 40_000


def check(engine: object, n_rows: int = N) -> None:
    """Evidence, predictions and certificate of a model that an engine has fitted, beside those of one process."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (n_rows, 2))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.standard_normal(n_rows)
    there, here = (
        certgp.SparseGP(10, max_iter=2, noise="constant", random_state=0, engine=each).fit(X, y)
        for each in (engine, "local")
    )
    pairs = {
        "evidence": (there.log_marginal_likelihood_, here.log_marginal_likelihood_),
        "predictions": (there.predict(X[:1000]), here.predict(X[:1000])),
        "certificate": (there.certify().kl.upper, here.certify().kl.upper),
    }
    for name, (a, b) in pairs.items():
        error = float(np.max(np.abs(np.subtract(a, b))) / np.max(np.abs(b)))
        print(f"{name}: relative difference {error:.1e}")
        if not error < 1e-9:
            raise SystemExit(f"{name} differs")
