"""One small fitted model and its page, shared by all tests here."""

from __future__ import annotations

import warnings

import pytest
from report_cases import pair_rows, wavy_rows

from certgp import SparseGP
from certgp.errors import ConvergenceWarning


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


@pytest.fixture(scope="session")
def pair():
    """A model of two outputs."""
    return SparseGP(rank=12, length_scale=1.0, optimize=False, random_state=0).fit(*pair_rows(150, 0))


@pytest.fixture(scope="session")
def both(pair, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "both.html"
    pair.report(*pair_rows(80, 1), path=path)
    return path
