"""Sarcos: two MATLAB files (version 5) with 21 joint positions, velocities, accelerations and 7 torques per row."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certgp.errors import DataFileError

Array = NDArray[np.float64]
_WIDTH, _INPUTS = 28, 21


def sarcos(paths: Sequence[Path]) -> tuple[Array, Array]:
    """Inputs (N, 21) and the first torque (N,) of the training file (44,484 rows) and the test file (4,449 rows).

    The paper pools both and splits anew. Others have found that the test rows are nearly all among the training rows,
    so scores on such splits are better than those on new movements would be.
    """
    values = np.concatenate([_matrix(path, path.stem) for path in paths])
    return values[:, :_INPUTS].copy(), values[:, _INPUTS].copy()


def _matrix(path: Path, name: str) -> Array:
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=[name])
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, zlib.error) as error:
        raise DataFileError(f"{path} cannot be read as a MATLAB file ({error}); download it again") from error
    if name not in content:
        raise DataFileError(f"{path} has no array {name!r}; is this the right file?")
    values = np.asarray(content[name], dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != _WIDTH:
        raise DataFileError(f"{path}: the array {name!r} has the shape {values.shape}; expected (N, {_WIDTH})")
    bad = np.flatnonzero(~np.isfinite(values).all(1))
    if len(bad):
        raise DataFileError(f"{path}: row {bad[0] + 1} of {name!r} has a missing or infinite value; download it again")
    return values
