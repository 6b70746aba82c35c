"""Rows held out at random. Most have no learned row with the same inputs: a copy that was learned would be easy. But
where inputs repeat, those of new rows do so too, and some held-out rows have learned copies: as many as come by chance,
where some inputs occur so much oftener than others that this is how rows come.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certgp.data import RowSource
from certgp.data.copies import are_frequencies, row_keys

Positions = NDArray[np.int64]
_MOST_HELD_OUT, _SHARE = 3_000, 5  # a fifth of the rows, at most
_READ_ROWS = 65_536
_FEWEST_INPUTS = 3  # different ones: with fewer, a model must know all of them


def split_rows(source: RowSource, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Positions to learn from and positions held out, sorted.

    If a share q of the rows repeat the inputs of another one, a share q / 2 of the held-out rows do so of learned rows:
    between new rows that are like the given ones (q) and rows that are new in every respect (0). Of the others, rows
    with the same inputs are all on one side. Where repeated inputs are frequencies of the population, new rows are like
    the given ones, and any rows are held out, as where there are hardly any different inputs.
    """
    _, group, sizes = np.unique(row_keys(_inputs(source), source.n_columns), return_inverse=True, return_counts=True)
    wanted = max(1, min(_MOST_HELD_OUT, source.n_rows // _SHARE))
    if len(sizes) < _FEWEST_INPUTS or are_frequencies(sizes):
        order = rng.permutation(source.n_rows)
        return np.sort(order[wanted:]), np.sort(order[:wanted])
    order = np.argsort(rng.permutation(len(sizes))[group], kind="stable")  # groups in random order
    repeated = 0.5 * float(sizes[sizes > 1].sum()) / source.n_rows
    cut = _cut_between_groups(group[order], max(1, round((1.0 - repeated) * wanted)))
    copies = _pick_copies(group, order[cut:], round(repeated * wanted), rng)
    held_out = np.sort(np.concatenate([order[:cut], copies]))
    return np.setdiff1d(order[cut:], copies), held_out


def _cut_between_groups(shuffled: Positions, wanted: int) -> int:
    """Where whole groups end, at most ``wanted`` rows in, but behind the first."""
    begins = np.flatnonzero(np.r_[True, shuffled[1:] != shuffled[:-1]])
    return int(begins[begins <= wanted].max()) or int(np.r_[begins, len(shuffled)][1])


def _pick_copies(group: Positions, rows: Positions, count: int, rng: np.random.Generator) -> Positions:
    """Some of these rows, one of a group each, whose groups have others among them."""
    shuffled = rng.permutation(rows)
    _, first, sizes = np.unique(group[shuffled], return_index=True, return_counts=True)
    found: Positions = rng.permutation(shuffled[first[sizes > 1]])[:count]
    return found


def _inputs(source: RowSource) -> Iterator[NDArray[np.float64]]:
    for chunk in source.chunks(_READ_ROWS):
        yield chunk.X.double().numpy()
