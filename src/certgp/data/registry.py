"""The benchmark data sets and where they are on this machine."""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certgp.errors import DataFileError

DATA_VARIABLE = "CERTGP_DATA"


@dataclass(frozen=True)
class DatasetInfo:
    """A regression data set stored as NAME.npz with arrays X (N, D) and y (N,)."""

    name: str
    n_rows: int
    n_columns: int
    note: str  # how the file differs from the paper's version


_DATASETS = {
    info.name: info
    for info in (
        DatasetInfo("elevators", 16_599, 18, "the paper's file"),
        DatasetInfo("protein", 45_730, 9, "the paper's file"),
        DatasetInfo(
            "keggdirected", 48_827, 20, "another cleaning of the paper's set; two thirds of the rows are duplicates"
        ),
        DatasetInfo("bike", 17_379, 17, "the paper's set, not one-hot encoded; target already transformed"),
        DatasetInfo("superconduct", 21_263, 76, "the paper's set with five columns missing"),
        DatasetInfo("3droad", 218_481, 2, "a random half of the paper's rows, longitude and latitude only"),
        DatasetInfo("sarcos", 4_449, 21, "the public test file of the paper's set"),
        DatasetInfo("concrete", 1_030, 8, "not in the paper"),
        DatasetInfo("energy", 768, 8, "not in the paper"),
        DatasetInfo("airfoil", 1_503, 5, "not in the paper"),
        DatasetInfo("yacht", 308, 6, "not in the paper"),
    )
}


def dataset_names() -> list[str]:
    """Names of all known data sets."""
    return list(_DATASETS)


def dataset_info(name: str) -> DatasetInfo:
    """What is known about a data set."""
    if name not in _DATASETS:
        raise DataFileError(f"unknown data set {name!r}; known ones: {', '.join(_DATASETS)}")
    return _DATASETS[name]


def data_directory() -> Path:
    """The directory that CERTGP_DATA names, or the user's cache directory."""
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "certgp"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "certgp"


def dataset_path(name: str) -> Path:
    """File of a data set, whether or not it is there."""
    return data_directory() / f"{dataset_info(name).name}.npz"


def load_dataset(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X (N, D) and y (N,) of a data set in the data directory."""
    path = dataset_path(name)
    if not path.exists():
        raise DataFileError(
            f"{path} is missing; put it there or set {DATA_VARIABLE} to the directory that holds {name}.npz"
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive["X"], archive["y"]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DataFileError(f"{path} is damaged ({error}); put a fresh copy of {name}.npz there") from error
