"""Which data sets are known and which are on this machine."""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from certgp.errors import DataFileError
from certgp_paper.datasets.catalogue import DATASETS, DatasetInfo

DATA_VARIABLE = "CERTGP_DATA"
_DAMAGED = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class LocalDataset:
    """A data set and its file on this machine."""

    info: DatasetInfo
    path: Path
    shape: tuple[int, int] | None  # None where the file is not there
    damaged: bool = False  # there, and not readable

    @property
    def difference(self) -> str:
        """How the file differs or may differ from the paper's version, or the source's; empty where it does not."""
        if self.damaged:
            return "damaged: delete it"
        return "" if self.shape is None else self.info.label(*self.shape)


def dataset_names() -> list[str]:
    """Names of all known data sets."""
    return list(DATASETS)


def dataset_info(name: str) -> DatasetInfo:
    """What is known about a data set."""
    if name not in DATASETS:
        raise DataFileError(f"unknown data set {name!r}; known ones: {', '.join(DATASETS)}")
    return DATASETS[name]


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


def local_dataset(name: str, damaged_as_missing: bool = False) -> LocalDataset:
    """A data set and the shape of its file, from the headers of the arrays alone."""
    info, path = dataset_info(name), dataset_path(name)
    try:
        return LocalDataset(info, path, stored_shape(path) if path.exists() else None)
    except DataFileError:
        if not damaged_as_missing:
            raise
        return LocalDataset(info, path, None, damaged=True)


def load_dataset(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X (N, D) and y (N,) of a data set in the data directory."""
    path = dataset_path(name)
    if not path.exists():
        raise DataFileError(missing_dataset(name))
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive["X"], archive["y"]
    except _DAMAGED as error:
        raise _damaged(path, error) from error


def missing_dataset(name: str) -> str:
    """What to say where the file of a data set is not there."""
    return (
        f"{dataset_path(name)} is missing; get it with 'certgp datasets fetch {name}', "
        f"or set {DATA_VARIABLE} to the directory that holds {name}.npz"
    )


def load_paper_version(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """X, y as near to the paper's version as the file here allows, and how they still differ (empty: not at all).

    The text also says what the paper leaves open about its version and was inferred here.

    Two of the versions in circulation hold all that the paper's have: Bike without its one-hot encoding, and KeggDir
    with another target (on 48,827 of the 53,413 rows). Everything else comes as ``load_dataset`` gives it.
    """
    from certgp_paper.datasets.preparation import recovered

    X, y = load_dataset(name)
    variants = {("bike", 17): recovered.bike, ("keggdirected", 20): recovered.keggdirected}
    change = variants.get((name, X.shape[1]))
    if change is not None:
        X, y = change(X, y)
    return X, y, dataset_info(name).label(*X.shape)


def stored_shape(path: Path) -> tuple[int, int]:
    """Rows and columns of X in an .npz file, read from its header: no data is loaded."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as stream:
            version = npy_format.read_magic(stream)
            read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
            n_rows, n_columns = read(stream)[0]
    except _DAMAGED as error:
        raise _damaged(path, error) from error
    return int(n_rows), int(n_columns)


def _damaged(path: Path, error: Exception) -> DataFileError:
    return DataFileError(
        f"{path} is damaged ({error}); delete it and get it again with 'certgp datasets fetch {path.stem}'"
    )
