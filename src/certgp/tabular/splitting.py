"""Honest hold-outs: whole groups, or the latest rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certgp.errors import InvalidInputError

Mask = NDArray[np.bool_]


def hold_out_groups(groups: NDArray[np.int64], share: float, seed: int, name: str) -> Mask:
    """Random whole groups with about this share of the rows (n,): no group is on both sides."""
    codes, sizes = np.unique(groups, return_counts=True)
    if len(codes) < 2:
        raise InvalidInputError(f"column {name!r} of --group has one value only, so no group can be held out; drop it")
    order = np.random.default_rng(seed).permutation(len(codes))
    filled = np.cumsum(sizes[order])
    wanted = share * len(groups)
    count = int(np.argmin(np.abs(filled - wanted))) + 1
    count = min(count, len(codes) - 1)
    return np.isin(groups, codes[order[:count]])


def hold_out_latest(times: NDArray[np.float64], share: float, name: str) -> Mask:
    """The latest rows, about this share of them (n,); rows of one time stay together."""
    moments, counts = np.unique(times, return_counts=True)
    if len(moments) < 2:
        raise InvalidInputError(
            f"column {name!r} of --time-split has one value only, so there is no later row; drop it"
        )
    later = len(times) - np.cumsum(counts)  # rows behind each moment
    cut = int(np.argmin(np.abs(later[:-1] - share * len(times))))
    return np.asarray(times > moments[cut])
