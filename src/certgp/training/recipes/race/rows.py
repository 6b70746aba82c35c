"""Rows held out at random, with verbatim repeated inputs on the same side: a copy that was learned would be easy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certgp.data import RowSource
from certgp.data.copies import row_keys

Positions = NDArray[np.int64]
_MOST_HELD_OUT, _SHARE = 3_000, 5  # a fifth of the rows, at most
_READ_ROWS = 65_536


def split_rows(source: RowSource, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Positions to learn from and positions held out, sorted; rows with the same inputs are all in one of them."""
    _, group = np.unique(row_keys(_inputs(source), source.n_columns), return_inverse=True)
    order = np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")  # groups in random order
    wanted = max(1, min(_MOST_HELD_OUT, source.n_rows // _SHARE))
    shuffled = group[order]
    begins = np.flatnonzero(np.r_[True, shuffled[1:] != shuffled[:-1]])
    cut = int(begins[begins <= wanted].max()) or int(np.r_[begins, source.n_rows][1])  # whole groups, at least one
    return np.sort(order[cut:]), np.sort(order[:cut])


def _inputs(source: RowSource) -> Iterator[NDArray[np.float64]]:
    for chunk in source.chunks(_READ_ROWS):
        yield chunk.X.double().numpy()
