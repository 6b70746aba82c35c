"""Data sets that are one table of numbers with the target in one of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certgp_paper.datasets.preparation.archives import TextFile, plain, tarred, tarred_in_zip, zipped
from certgp_paper.datasets.preparation.text import Layout, read_numbers

Array = NDArray[np.float64]


def protein(paths: Sequence[Path]) -> tuple[Array, Array]:
    """CASP.csv: RMSD, then nine properties."""
    names = ("RMSD", *(f"F{i}" for i in range(1, 10)))
    return _target_at(0, zipped(paths[0], "CASP.csv"), Layout(10, header=dict(enumerate(names))))


def superconduct(paths: Sequence[Path]) -> tuple[Array, Array]:
    """train.csv: 81 properties, then the critical temperature."""
    header = {0: "number_of_elements", 81: "critical_temp"}
    return _target_at(-1, zipped(paths[0], "train.csv"), Layout(82, header=header))


def road(paths: Sequence[Path]) -> tuple[Array, Array]:
    """3D_spatial_network.txt, no header: OSM identifier, longitude, latitude, altitude."""
    return _target_at(-1, zipped(paths[0], "3D_spatial_network.txt"), Layout(4))


def song(paths: Sequence[Path]) -> tuple[Array, Array]:
    """YearPredictionMSD.txt, no header: year, then 90 timbre features."""
    return _target_at(0, zipped(paths[0], "YearPredictionMSD.txt"), Layout(91))


def buzz(paths: Sequence[Path]) -> tuple[Array, Array]:
    """Twitter.data in regression.tar.gz in the zip, no header: 11 features at 7 times, then the active discussions."""
    return _target_at(-1, tarred_in_zip(paths[0], "regression.tar.gz", "Twitter.data"), Layout(78))


def elevators(paths: Sequence[Path]) -> tuple[Array, Array]:
    """elevators.data (8,752 lines) and elevators.test (7,847), no header: 18 features, then the goal."""
    parts = [_target_at(-1, tarred(paths[0], f"elevators.{part}"), Layout(19)) for part in ("data", "test")]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def concrete(paths: Sequence[Path]) -> tuple[Array, Array]:
    """UCI's CSV of the set: eight ingredients and the age, then the strength."""
    return _target_at(-1, plain(paths[0]), Layout(9, header={0: "Cement", 3: "Water", 7: "Age"}))


def energy(paths: Sequence[Path]) -> tuple[Array, Array]:
    """UCI's CSV of the set: X1, ..., X8, heating load Y1 (the target), cooling load Y2 (left out)."""
    names = (*(f"X{i}" for i in range(1, 9)), "Y1", "Y2")
    values = read_numbers(plain(paths[0]), Layout(10, header=dict(enumerate(names))))
    return values[:, :8], values[:, 8]


def airfoil(paths: Sequence[Path]) -> tuple[Array, Array]:
    """airfoil_self_noise.dat, no header, between tabs: five features, then the sound pressure."""
    return _target_at(-1, zipped(paths[0], "airfoil_self_noise.dat"), Layout(6, delimiter=None))


def yacht(paths: Sequence[Path]) -> tuple[Array, Array]:
    """yacht_hydrodynamics.data, no header, between one or two blanks: six features, then the resistance."""
    return _target_at(-1, zipped(paths[0], "yacht_hydrodynamics.data"), Layout(7, delimiter=None))


def _target_at(position: int, file: TextFile, layout: Layout) -> tuple[Array, Array]:
    values = read_numbers(file, layout)
    return np.delete(values, position, axis=1), values[:, position].copy()
