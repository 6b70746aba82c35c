"""Predictions of some rows as columns of a table, with what is counted on the way: here or on a worker."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from certgp.cli.columns import Columns, rows_for
from certgp.data.pieces import Piece, check_seen
from certgp.data.reading import Array, count_rows, ending, read_parts, read_range
from certgp.data.skipped import Skipped
from certgp.data.tables import TableFiles
from certgp.errors import DataFileError, ExtrapolationWarning
from certgp.estimators.held_out import count_outside, distribution_of_target, models_log
from certgp.estimators.outputs import name_outputs
from certgp.estimators.scores import Scores
from certgp.estimators.validation import OutsideRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certgp.data import ArrayRows
    from certgp.estimators import GPRegressor

_PIECE_ROWS = 2**18  # of a task


@dataclass(frozen=True)
class ScoreCounts:
    """Sums from which scores follow; ``+`` joins those of other rows."""

    n: int = 0
    squares: float = 0.0
    losses: float = 0.0
    inside: int = 0

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        return ScoreCounts(
            self.n + other.n, self.squares + other.squares, self.losses + other.losses, self.inside + other.inside
        )

    def scores(self, coverage: float) -> Scores:
        """The scores of all rows."""
        return Scores(math.sqrt(self.squares / self.n), self.losses / self.n, self.inside / self.n, coverage)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of some rows."""

    columns: dict[str, Array]
    rows: NDArray[np.int64]  # their numbers
    outside: OutsideRange
    counts: ScoreCounts | None  # where the target is known
    trouble: str | None = None  # why it is not, where it should be
    behind: int = 0  # rows of the file, with those that are left out
    skipped: Skipped | None = field(default=None)


def predict_rows(model: GPRegressor, rows: NDArray[np.int64], X: Array, y: Array | None, coverage: float) -> Predicted:
    """Predictions of rows X (n, D) with these numbers, scored where y (n,) is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # whoever has all rows says it once
        outside = count_outside(model, rows_for(model, X))
        found = _columns(model, rows_for(model, X), coverage)
        counts = None
        if y is not None:
            squares = float(((found["mean"] - y) ** 2).sum())
            inside = int(((found["lower"] <= y) & (y <= found["upper"])).sum())
            counts = ScoreCounts(len(y), squares, len(y) * _mean_loss(model, X, y), inside)
    return Predicted(found, rows, outside, counts)


def _columns(model: GPRegressor, X: ArrayRows, coverage: float) -> dict[str, Array]:
    """Columns of the table to write; of several outputs a group for each, by name."""
    if models_log(model):
        law = distribution_of_target(model, X)
        mean, variance = law.moments()
        ends = law.quantiles(np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage, 0.5]))
        found = {"mean": mean, "std": np.sqrt(variance)}
        found |= {name: ends[..., i] for i, name in enumerate(("lower", "upper", "median"))}
    else:
        mean, std = model.predict(X, return_std=True)
        lower, upper = model.predict_interval(X, coverage)
        found = {"mean": np.asarray(mean), "std": std, "lower": lower, "upper": upper}
    if model.outputs_ is None:
        return found
    return {f"{name}_{of}": each[:, j] for j, of in enumerate(name_outputs(model)) for name, each in found.items()}


def _mean_loss(model: GPRegressor, X: Array, y: Array) -> float:
    """Mean negative log predictive density, in the units of y."""
    if models_log(model):
        return -float(distribution_of_target(model, rows_for(model, X)).log_density(y).mean())
    return float(model.nlpd(rows_for(model, X, y)))


@dataclass(frozen=True, eq=False)
class PredictPiece:
    """A task of a cluster: reads a piece of a file, predicts its rows, and reads no further."""

    model: GPRegressor
    columns: Columns
    coverage: float
    skips: bool

    def __call__(self, piece: Piece) -> Predicted:
        check_seen(piece.path)
        skipped = Skipped() if self.skips else None
        y, trouble = self._target(piece)
        found, behind, at = [], 0, 0
        for rows, X, next_row in self._inputs(piece, skipped):
            behind = next_row
            if not len(X):  # all of them were left out
                continue
            own = None if y is None else y[at : at + len(X)]
            found.append(predict_rows(self.model, rows, X, own, self.coverage))
            at += len(X)
        if not found:
            return Predicted({}, np.empty(0, np.int64), OutsideRange(), None, trouble, behind, skipped)
        return replace(join_predicted(found), trouble=trouble, behind=behind, skipped=skipped)

    def _inputs(self, piece: Piece, skipped: Skipped | None) -> Iterator[tuple[NDArray[np.int64], Array, int]]:
        """Numbers of rows in their file, the rows, and the number of the row behind them."""
        if skipped is not None:
            for part in read_parts(piece.path, self.columns.inputs, skipped):
                yield part.rows, part.values, part.behind
            return
        start = piece.start
        for X in read_range(piece.path, self.columns.inputs, start, piece.stop, skips=False):
            yield np.arange(start, start + len(X)), X, start + len(X)
            start += len(X)

    def _target(self, piece: Piece) -> tuple[Array | None, str | None]:
        """The target, where the files hold it; one that is empty, as in many tables of new rows, is no error."""
        if self.columns.target is None or self.skips:
            return None, None
        try:
            parts = list(read_range(piece.path, [self.columns.target], piece.start, piece.stop, skips=False))
        except DataFileError as error:
            return None, str(error)
        return np.concatenate(parts)[:, 0], None


def pieces_of(files: TableFiles) -> list[Piece]:
    """Pieces of files that workers predict: some rows of a Parquet file, all of another."""
    found: list[Piece] = []
    for file in files.files:
        if ending(file) == ".parquet" and files.skipped is None:
            n_rows = count_rows(file, ())
            starts = range(0, n_rows, _PIECE_ROWS)
            found += [Piece(file, start, min(start + _PIECE_ROWS, n_rows)) for start in starts]
        else:
            found.append(Piece(Path(file), 0, 2**62))
    return found


def join_predicted(parts: list[Predicted]) -> Predicted:
    """Predictions of several groups of rows."""
    counts = None
    if all(part.counts is not None for part in parts):
        counts = sum((part.counts for part in parts if part.counts is not None), ScoreCounts())
    outside = sum((part.outside for part in parts[1:]), parts[0].outside)
    names = parts[0].columns
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
    return Predicted(columns, np.concatenate([part.rows for part in parts]), outside, counts)
