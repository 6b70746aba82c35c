"""The data sets of the league: rows of a split, and their traps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from certgp_paper.datasets.registry import load_dataset
from certgp_paper.datasets.splits import TEST_SHARE, standardised_split

BIKE, CLEAN_BIKE = "bike", "bike-clean"
LEAKING = (15, 16)  # columns of bike: casual and registered, whose sum is what the target is the logarithm of
DATA = (
    "yacht",
    "energy",
    "concrete",
    "airfoil",
    "sarcos",
    "elevators",
    CLEAN_BIKE,
    "superconduct",
    "keggdirected",
    "protein",
    "3droad",
    BIKE,
)
RANKED = tuple(name for name in DATA if name != BIKE)  # with its leak it says who can add two columns
SPLITS = 5
ROUNDING = 1e-12  # scatter of a column, relative to its size, that only rounding makes
CLEANED = {("elevators", 1), ("keggdirected", 0)}  # splits with such a column, left as it was in the first cells


def repeated_inputs(X: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Which test rows have the inputs of a training row."""
    known = {row.tobytes() for row in np.ascontiguousarray(X)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(X_test)])


@dataclass(frozen=True, eq=False)
class Rows:
    """A standardised split, and which of its test inputs occur among the training inputs."""

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray

    @property
    def repeated(self) -> np.ndarray:
        return repeated_inputs(self.X, self.X_test)

    def describe(self) -> dict[str, float | int]:
        """Sizes and traps."""
        return {
            "rows": len(self.y),
            "columns": self.X.shape[1],
            "test_rows": len(self.y_test),
            "distinct_targets": len(np.unique(np.concatenate([self.y, self.y_test]))),
            "repeated_share": float(np.mean(self.repeated)),
        }

    def save(self, path: Path) -> None:
        np.savez(path, X=self.X, X_test=self.X_test, y=self.y, y_test=self.y_test)


def load_rows(name: str, split: int) -> Rows:
    """The rows of all contestants: columns that are constant in training are zero in training and in test."""
    source = BIKE if name == CLEAN_BIKE else name
    X, X_test, y, y_test = standardised_split(source, split)
    constant = constant_columns(train_test_split(load_dataset(source)[0], test_size=TEST_SHARE, random_state=split)[0])
    X[:, constant] = X_test[:, constant] = 0.0
    if name == CLEAN_BIKE:
        X, X_test = np.delete(X, LEAKING, axis=1), np.delete(X_test, LEAKING, axis=1)
    return Rows(np.ascontiguousarray(X), np.ascontiguousarray(X_test), y, y_test)


def constant_columns(X: np.ndarray) -> np.ndarray:
    """Which columns vary by rounding alone: the mean of equal numbers need not be that number, and their standard
    deviation is then not zero but 1e-16 of it, so that another value in test is 1e17 of these.
    """
    return np.ptp(X, axis=0) <= ROUNDING * np.abs(X).max(0)
