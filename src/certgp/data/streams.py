"""Rows that other libraries hand out batch by batch: lazy polars frames, Arrow datasets and readers, Dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certgp.data.columns import Numbers
from certgp.data.rows import FrameRows, is_from
from certgp.errors import InvalidInputError

_BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class Stream:
    """Columns that come batch by batch, once or again and again."""

    what: str  # for messages
    names: tuple[str, ...]
    nameless: bool  # are the names made up, because arrays have none?
    batches: Callable[[list[str]], Iterator[Any]]  # of the named columns: frames, or arrays in the order of the names
    delayed: Callable[[list[str]], list[Any]] | None = None  # the same of Dask, for a cluster to compute

    def numbers(self, names: Sequence[str]) -> Iterator[Numbers]:
        """The named columns, (n, number of names) at a time; words and dates are refused."""
        start = 0
        for batch in self.batches(list(names)):
            try:
                part = batch if isinstance(batch, np.ndarray) else FrameRows(batch).take(slice(None))[0]
            except InvalidInputError as error:
                raise InvalidInputError(f"in the batch of {self.what} that begins with row {start}: {error}") from error
            start += len(part)
            yield part


def as_stream(source: Any) -> Stream | None:
    """The stream behind an object of another library; None where it is of no kind that is known."""
    return next((stream for known in _KINDS if (stream := known(source)) is not None), None)


def _lazy_frame(source: Any) -> Stream | None:
    if not is_from(source, "polars", "LazyFrame"):
        return None

    def batches(names: list[str]) -> Iterator[Any]:
        yield from source.select(names).collect_batches(chunk_size=_BATCH_ROWS)

    return Stream("a lazy polars frame", tuple(source.collect_schema().names()), False, batches)


def _arrow_dataset(source: Any) -> Stream | None:
    if not is_from(source, "pyarrow.dataset", "Dataset"):
        return None

    def batches(names: list[str]) -> Iterator[pa.Table]:
        for batch in source.to_batches(
            columns=names, batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False
        ):
            yield pa.Table.from_batches([batch])

    return Stream("an Arrow dataset", tuple(source.schema.names), False, batches)


def _arrow_reader(source: Any) -> Stream | None:
    if not isinstance(source, pa.RecordBatchReader):
        return None

    def batches(names: list[str]) -> Iterator[pa.Table]:
        for batch in source:
            yield pa.Table.from_batches([batch]).select(names)

    return Stream("an Arrow reader", tuple(source.schema.names), False, batches)


def _dask_frame(source: Any) -> Stream | None:
    if not is_from(source, "dask.dataframe", "DataFrame"):
        return None

    def batches(names: list[str]) -> Iterator[Any]:
        wanted = source[names]
        for i in range(wanted.npartitions):
            yield wanted.partitions[i].compute()

    def delayed(names: list[str]) -> list[Any]:
        return list(source[names].to_delayed())

    return Stream("a Dask frame", tuple(map(str, source.columns)), False, batches, delayed)


def _dask_array(source: Any) -> Stream | None:
    if not is_from(source, "dask.array", "Array"):
        return None
    if source.ndim != 2:
        raise InvalidInputError(f"a Dask array must have rows and columns (N, D), found shape {source.shape}")

    def batches(names: list[str]) -> Iterator[NDArray[Any]]:
        columns = [int(name[1:]) for name in names]
        for i in range(source.numblocks[0]):
            yield np.asarray(source.blocks[i].compute(), dtype=np.float64)[:, columns]

    def delayed(names: list[str]) -> list[Any]:
        columns = [int(name[1:]) for name in names]
        return [block for (block,) in source[:, columns].rechunk({1: -1}).to_delayed().tolist()]

    return Stream("a Dask array", tuple(f"x{j}" for j in range(source.shape[1])), True, batches, delayed)


_KINDS = (_lazy_frame, _arrow_dataset, _arrow_reader, _dask_frame, _dask_array)
