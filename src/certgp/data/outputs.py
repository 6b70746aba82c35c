"""Rows with several targets, some of which may be missing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data.columns import Numbers
from certgp.data.rows import PickedRows, Positions, Rows, read_target
from certgp.data.sources import Chunk, RowSource, SubsetSource
from certgp.data.summary import Summary, column_moments, summarise
from certgp.errors import InvalidInputError

Array = NDArray[np.float64]
_FEWEST_ROWS = 2


class TargetRows(Rows):
    """Rows of others with targets of their own: y (N,), (N, q), or none."""

    def __init__(self, rows: Rows, y: Array | None) -> None:
        self._rows, self._y = rows, y
        self.n_rows, self.n_columns, self.names = rows.n_rows, rows.n_columns, rows.names

    def take(self, positions: Positions) -> tuple[Numbers, Numbers | None]:
        return self._rows.take(positions)[0], None if self._y is None else self._y[positions]

    def weights(self, positions: Positions) -> Array | None:
        return self._rows.weights(positions)


class OutputRows:
    """Rows and their targets Y (N, q), NaN where one is missing. Y is held in memory, inputs are read in chunks."""

    def __init__(self, inputs: Rows, Y: Array) -> None:
        self.inputs, self.Y = TargetRows(inputs, None), Y
        self.observed = ~np.isnan(Y)

    @staticmethod
    def of(rows: Rows) -> OutputRows:
        """Those of rows whose ``take`` gives y (n, q); rows without any target are left out."""
        Y = read_target(rows)
        infinite = np.isinf(Y)
        if infinite.any():
            row, column = (int(i) for i in np.argwhere(infinite)[0])
            raise InvalidInputError(
                f"Input y contains infinity in row {row} (counted from 0), output {column}; NaN stands for a missing "
                "number"
            )
        present = np.flatnonzero(~np.isnan(Y).all(1))
        return OutputRows(rows, Y) if len(present) == len(Y) else OutputRows(PickedRows(rows, present), Y[present])

    @property
    def count(self) -> int:
        """q, the number of outputs."""
        return int(self.Y.shape[1])

    def check_enough(self) -> None:
        """Refuse outputs with too few targets to learn from."""
        for name, number in enumerate(self.observed.sum(0)):
            if number < _FEWEST_ROWS:
                raise InvalidInputError(
                    f"output {name} of y (counted from 0) has {number} number(s) that are not missing; at least "
                    f"{_FEWEST_ROWS} are needed, so leave the output out"
                )

    def output(self, j: int) -> Rows:
        """The rows at which output j was observed, with that target."""
        rows = np.flatnonzero(self.observed[:, j])
        if len(rows) == len(self.Y):
            return TargetRows(self.inputs, self.Y[:, j])
        return TargetRows(PickedRows(self.inputs, rows), self.Y[rows, j])

    def split(self) -> list[Rows]:
        """Those of each output."""
        return [self.output(j) for j in range(self.count)]

    def summarise(self) -> list[Summary]:
        """One for each output: inputs as all rows have them, range and target as its own have them.

        Outputs observed at the same rows need one pass over these.
        """
        whole = summarise(self.inputs)
        digest = hashlib.sha256(whole.digest.encode() + np.ascontiguousarray(self.Y).tobytes()).hexdigest()
        weights = self.inputs.weights(slice(None))
        seen: dict[bytes, Summary] = {np.ones(len(self.Y), dtype=bool).tobytes(): whole}
        found = []
        for j in range(self.count):
            rows = self.observed[:, j]
            key = rows.tobytes()
            if key not in seen:
                seen[key] = summarise(PickedRows(self.inputs, np.flatnonzero(rows)))
            ends = seen[key].inputs
            inputs = replace(whole.inputs, least=ends.least, largest=ends.largest)
            own = None if weights is None else weights[rows]
            target = column_moments(self.Y[rows, j : j + 1], [f"output {j} of y"], own)
            found.append(replace(whole, n_rows=int(rows.sum()), inputs=inputs, target=target, digest=digest))
        return found


class OutputSource(RowSource):
    """Standardised inputs of another source with targets (N,), or (N, q) with NaN where one is missing."""

    def __init__(self, inputs: RowSource, Y: Tensor) -> None:
        self._inputs, self._Y = inputs, Y
        self.n_rows, self.n_columns = inputs.n_rows, inputs.n_columns

    def take(self, positions: Positions) -> Chunk:
        chunk = self._inputs.take(positions)
        rows = positions if isinstance(positions, slice) else torch.from_numpy(positions)
        return Chunk(chunk.X, self._Y[rows].to(chunk.X.dtype), chunk.weight)

    def with_outputs(self, outputs: Sequence[int]) -> OutputSource:
        """Some of the outputs, at the rows where one of them was observed."""
        Y = self._Y[:, list(outputs)]
        return self._at(torch.nonzero(~Y.isnan().all(1))[:, 0], Y)

    def output(self, j: int) -> OutputSource:
        """One output (n,), at the rows where it was observed."""
        y = self._Y[:, j]
        return self._at(torch.nonzero(~y.isnan())[:, 0], y)

    def constant_outputs(self) -> list[int]:
        """Those that never vary."""
        least, most = self._Y.nan_to_num(torch.inf).amin(0), self._Y.nan_to_num(-torch.inf).amax(0)
        return torch.nonzero(least == most)[:, 0].tolist()

    def _at(self, rows: Tensor, Y: Tensor) -> OutputSource:
        if len(rows) == self.n_rows:
            return OutputSource(self._inputs, Y)
        return OutputSource(SubsetSource(self._inputs, rows.numpy()), Y[rows])
