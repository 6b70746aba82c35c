"""Small tables with a known smooth truth, in every format."""

from __future__ import annotations

import io
import re
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


class Terminal(io.StringIO):
    """A stream that a command takes for a terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO) -> list[str]:
    """Lines of a terminal after carriage returns, erasures and movements of the cursor have done their work."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[^\x1b]", stream.getvalue().replace("\r\n", "\n")):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b") and part.endswith("A"):
            row = max(0, row - int(part[2:-1] or 1))
        elif part.startswith("\x1b") and part.endswith("K"):
            lines[row] = "" if part == "\x1b[2K" else lines[row][:column]
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + 1 :]
            column += 1
    while len(lines) > 1 and not lines[-1] and not lines[-2]:
        lines.pop()
    return [line.rstrip() for line in lines]
