"""One small model behind a server, shared by all tests here."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from running import serving

from certgp import SparseGP
from certgp.errors import ConvergenceWarning
from certgp.serving import Limits


@pytest.fixture(scope="session")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(300, 3)), columns=["height", "the <b>width</b>", "idle"])
    y = 50 + 3 * np.sin(2 * X["height"]) + X["the <b>width</b>"] + 0.5 * rng.standard_normal(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp = SparseGP(rank=20, max_iter=15, noise="constant", random_state=0).fit(X, y.to_numpy())
    gp.target_name_ = "price"
    return gp


@pytest.fixture(scope="session")
def server(fitted):
    with serving(fitted, Limits(max_rows=50, max_bytes=20_000)) as found:
        yield found
