"""Rows that repeat another one, number by number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from certgp.data.columns import Numbers
from certgp.data.rows import Rows

Keys = NDArray[np.uint64]
_READ_ROWS = 65_536
_MOST_ROWS = 4_000_000  # of which keys are kept in memory (64 MiB); among more, nobody looks for copies
# Times more often than rows with other inputs must rows with the same inputs share their target: numbers that were
# rounded coincide too, and of those with fewer than thirty values or so nobody can tell (docs/decisions/0041)
_OFTEN = 30.0
# Variance over mean of how often each row occurs. Copies that come by accident, such as a table read twice or rows
# drawn with replacement, fall on every row alike (at most about 1). Counts that are far more uneven are frequencies of
# the population: rows to come repeat the frequent ones, and a model that counts these once misjudges most of them
# (docs/decisions/0053).
_UNEVEN = 10.0
_FEW = 0.1  # as a share of the rows: so few copies do no harm, and rows to come repeat some of these as well


def row_keys(blocks: Iterable[NDArray[np.floating]], n_columns: int) -> Keys:
    """One number (N,) per row of all blocks (n, D), the same for the same numbers: a multilinear hash of their bits
    modulo 2^64.
    """
    draws = np.random.default_rng(0).integers(1, 2**63, n_columns, dtype=np.uint64)
    factors = draws * np.uint64(2) + np.uint64(1)
    keys = []
    for block in blocks:
        bits = (np.ascontiguousarray(block, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 equals 0.0
        mixed = bits ^ (bits >> np.uint64(29))  # numbers with few digits have zeros at their end
        keys.append((mixed * factors).sum(1, dtype=np.uint64))
    return np.concatenate(keys)


def without_copies(rows: Rows) -> Rows:
    """The rows, each verbatim repeated one (inputs and target) once, where the target is continuous: nobody observes
    the same number twice, so that a copy is no second observation and says nothing of the noise.

    Rows with the same inputs and other targets stay, and so do all rows where targets of different inputs coincide so
    often that equal rows may be draws of their own, where some rows occur so much oftener than others that these counts
    are no accident, where they have weights, where copies are fewer than a tenth of the rows, and where one row would
    be left.
    """
    if rows.n_rows > _MOST_ROWS or rows.weights(slice(0, 1)) is not None:
        return rows
    inputs, whole, y = _read(rows)
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    if rows.n_rows - len(first) < _FEW * rows.n_rows or len(first) in (1, rows.n_rows):
        return rows
    if are_frequencies(counts):
        return rows
    first = np.sort(first)
    pairs = _count_pairs(inputs)
    same_target = _count_pairs(whole) / pairs
    by_chance = _count_pairs(y[first]) / (0.5 * len(first) * (len(first) - 1))
    return rows.pick(first) if same_target > _OFTEN * by_chance else rows


def are_frequencies(counts: NDArray[np.int64]) -> bool:
    """Do rows occur so unevenly often, each ``counts`` times (k,), that rows to come repeat the frequent ones?"""
    return bool(counts.var() > _UNEVEN * counts.mean())


def _read(rows: Rows) -> tuple[Keys, Keys, NDArray[np.float64]]:
    """Keys (N,) of the inputs and of inputs and target, and the target (N,)."""
    inputs, whole, targets = zip(*rows.map(_keys_of, _READ_ROWS), strict=True)
    return np.concatenate(inputs), np.concatenate(whole), np.concatenate(targets, dtype=np.float64)


def _keys_of(X: Numbers, y: Numbers | None) -> tuple[Keys, Keys, Numbers]:
    assert y is not None
    return row_keys([X], X.shape[1]), row_keys([np.column_stack([X, y])], X.shape[1] + 1), y


def _count_pairs(values: NDArray[np.generic]) -> float:
    """Of equal values."""
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((0.5 * counts * (counts - 1.0)).sum())
