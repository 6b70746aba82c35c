"""Small tables with a known truth, for reports."""

from __future__ import annotations

import numpy as np
import pandas as pd


def wavy_rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Names that would break a page which did not escape them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    y = 50 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n)
    return pd.DataFrame(X, columns=["<b>height</b>", 'the "width" & more', "idle"]), y


def pair_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two outputs (n, 2) of two inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2], 1) + 0.2 * rng.standard_normal((n, 2))
