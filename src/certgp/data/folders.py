"""Columns in names of folders: year=2001/part.parquet, as Hive, Spark, pandas and Arrow write partitioned tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from certgp.data.csv_text import is_number

_FOLDER = re.compile(r"([^=]+)=([^=]*)")
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(path: Path) -> dict[str, str]:
    """Columns that folders of a path name, and their value in all rows of the file; as in other readers, a column of
    the same name in the file itself gives way.
    """
    found = (_FOLDER.fullmatch(part) for part in path.parts[:-1])
    return {unquote(each[1]): unquote(each[2]) for each in found if each is not None}


def with_folder_columns(path: Path, names: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The named columns of some rows of a file; those of its folders are added."""
    folders = folder_columns(path)
    if not folders:
        return batch
    columns = [_repeated(folders[name], len(batch)) if name in folders else batch.column(name) for name in names]
    return pa.record_batch(columns, names=list(names))


def are_short(texts: Sequence[str]) -> bool:
    """Does float32 hold these numbers as they are?"""
    numbers = [float(text) for text in texts if is_number(text)]
    with np.errstate(over="ignore"):  # one that is too large becomes infinite, and so another one
        return all(float(np.float32(number)) == number for number in numbers)


def _repeated(text: str, count: int) -> pa.Array:
    """A number where the text is one; what is missing is null."""
    if text == _MISSING:
        return pa.nulls(count)
    return pa.repeat(float(text) if is_number(text) else text, count)
