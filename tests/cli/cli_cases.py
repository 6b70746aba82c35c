"""Small tables with a known smooth truth, in every format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

NAMES = ("a", "b", "price")
COLUMNS = ("mean", "std", "lower", "upper")


@dataclass(frozen=True)
class Outcome:
    """What a user sees of a command."""

    code: int
    out: str
    err: str

    def error(self) -> str:
        """The one line of a refused command."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("error: ")
        return self.err


def rows(n: int = 80, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return np.column_stack([X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n)])


def write(path: Path, values: np.ndarray, names: tuple[str, ...] = NAMES) -> Path:
    """Rows in the format of the file's ending; the last column is the target."""
    if path.suffix == ".npz":
        np.savez(path, X=values[:, :-1], y=values[:, -1])
    elif path.suffix == ".npy":
        np.save(path, values)
    else:
        table = pa.table(dict(zip(names, values.T, strict=True)))
        (pa_csv.write_csv if path.suffix == ".csv" else pa_parquet.write_table)(table, path)
    return path
