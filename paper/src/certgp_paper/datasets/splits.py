"""The splits of the paper's released code, standardised as there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from certgp_paper.datasets.registry import load_dataset, load_paper_version

Array = NDArray[np.float64]
TEST_SHARE = 0.1


class Split(NamedTuple):
    """Training and test rows in units of the training rows' mean and standard deviation."""

    X: Array  # (N, D)
    X_test: Array
    y: Array  # (N,)
    y_test: Array


def standardised_split(name: str, number: int, as_in_paper: bool = False) -> Split:
    """``train_test_split(X, y, test_size=0.1, random_state=number)``; moments of the training part alone.

    ``as_in_paper`` takes the paper's inputs and target where the file at hand allows it (``load_paper_version``).
    """
    X, y = load_paper_version(name)[:2] if as_in_paper else load_dataset(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=number)
    shift, scale = X.mean(0), X.std(0)
    scale[scale == 0] = 1.0
    return Split((X - shift) / scale, (X_test - shift) / scale, (y - y.mean()) / y.std(), (y_test - y.mean()) / y.std())
