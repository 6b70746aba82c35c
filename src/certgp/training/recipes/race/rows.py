"""Rows held out at random, with verbatim repeated inputs on the same side: a copy that was learned would be easy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certgp.data import RowSource

Positions = NDArray[np.int64]
_MOST_HELD_OUT, _SHARE = 3_000, 5  # a fifth of the rows, at most
_READ_ROWS = 65_536


def split_rows(source: RowSource, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Positions to learn from and positions held out, sorted; rows with the same inputs are all in one of them."""
    _, group = np.unique(_row_keys(source), return_inverse=True)
    order = np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")  # groups in random order
    wanted = max(1, min(_MOST_HELD_OUT, source.n_rows // _SHARE))
    shuffled = group[order]
    begins = np.flatnonzero(np.r_[True, shuffled[1:] != shuffled[:-1]])
    cut = int(begins[begins <= wanted].max()) or int(np.r_[begins, source.n_rows][1])  # whole groups, at least one
    return np.sort(order[cut:]), np.sort(order[:cut])


def _row_keys(source: RowSource) -> NDArray[np.uint64]:
    """One number (N,) per row, the same for the same inputs: a multilinear hash of their bits modulo 2^64."""
    factors = np.random.default_rng(0).integers(1, 2**63, source.n_columns, dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    keys = []
    for chunk in source.chunks(_READ_ROWS):
        bits = (chunk.X.double().numpy() + 0.0).view(np.uint64)  # -0.0 equals 0.0
        mixed = bits ^ (bits >> np.uint64(29))  # numbers with few digits have zeros at their end
        keys.append((mixed * factors).sum(1, dtype=np.uint64))
    return np.concatenate(keys)
