"""Data sets from their sources: download, prepare, write NAME.npz."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from certgp.errors import DataFileError
from certgp_paper.datasets.download import Progress, download, forget
from certgp_paper.datasets.registry import data_directory, local_dataset

DOWNLOADS = "downloads"  # folder in the data directory for the sources' own files


@dataclass(frozen=True)
class Fetched:
    """What is there after fetching."""

    name: str
    path: Path
    n_rows: int
    n_columns: int
    was_there: bool
    difference: str  # from the paper's version, or the source's; empty where there is none


def fetch_dataset(
    name: str,
    progress: Progress = lambda name, done, total: None,
    timeout: float = 30.0,
    accept_changed: bool = False,
) -> Fetched:
    """Have NAME.npz in the data directory; a file that is already there stays as it is, whichever version it holds."""
    local = local_dataset(name)
    was_there = local.shape is not None
    if not was_there:
        _make(name, progress, timeout, accept_changed)
        local = local_dataset(name)
    assert local.shape is not None
    return Fetched(name, local.path, *local.shape, was_there, local.difference)


def _make(name: str, progress: Progress, timeout: float, accept_changed: bool) -> None:
    from certgp.data import write_table
    from certgp_paper.datasets.preparation import prepare

    local = local_dataset(name)
    folder = data_directory() / DOWNLOADS / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"{folder} cannot be created ({error.strerror}); set CERTGP_DATA to a directory that you may write to"
        ) from error
    paths = [folder / file.name for file in local.info.files]
    for file, path in zip(local.info.files, paths, strict=True):
        download(file, path, progress, timeout, accept_changed)
    try:
        X, y = prepare(local.info, paths)
    except DataFileError:
        for path in paths:  # it may be a page that says sorry: its checksum must not be the expected one from now on
            forget(path)
        raise
    write_table(local.path, {"X": X, "y": y})
