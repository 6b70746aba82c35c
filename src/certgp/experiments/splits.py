"""The splits of the paper's released code, standardised as there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from certgp.data import load_dataset

Array = NDArray[np.float64]
TEST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows in units of the training rows' mean and standard deviation."""

    X: Array  # (N, D)
    y: Array  # (N,)
    X_test: Array
    y_test: Array


def standardised_split(name: str, number: int) -> Split:
    """``train_test_split(X, y, test_size=0.1, random_state=number)``; moments of the training part alone."""
    X, y = load_dataset(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=number)
    shift, scale = X.mean(0), X.std(0)
    scale[scale == 0] = 1.0
    return Split((X - shift) / scale, (y - y.mean()) / y.std(), (X_test - shift) / scale, (y_test - y.mean()) / y.std())
