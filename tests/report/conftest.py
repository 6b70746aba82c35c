"""One small fitted model and its page, shared by all tests here."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from certgp import SparseGP
from certgp.errors import ConvergenceWarning


def wavy_rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Names that would break a page which did not escape them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    y = 50 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n)
    return pd.DataFrame(X, columns=["<b>height</b>", 'the "width" & more', "idle"]), y


@pytest.fixture(scope="session")
def fitted():
    X, y = wavy_rows(400, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp = SparseGP(rank=25, max_iter=25, noise="constant", random_state=0).fit(X, y)
    gp.target_name_ = "price </script><script>alert(1)</script>"
    return gp


@pytest.fixture(scope="session")
def page(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    fitted.report(*wavy_rows(200, 1), path=path)
    return path
