"""From the files as their sources publish them to X (N, D) and y (N,): a function per data set, a file per format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certgp_paper.datasets.catalogue import DatasetInfo

Array = NDArray[np.float64]
Parser = Callable[[Sequence[Path]], tuple[Array, Array]]


def prepare(info: DatasetInfo, paths: Sequence[Path]) -> tuple[Array, Array]:
    """X (N, D) and y (N,) of a data set from its downloaded files, in the order of ``info.files``."""
    module, function = info.parser.split(":")
    parse: Parser = getattr(import_module(f"certgp_paper.datasets.preparation.{module}"), function)
    return parse(paths)
