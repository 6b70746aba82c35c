"""Rows on the workers of a Dask cluster: decoded there from files or from partitions of Dask's own collections.

A decoded part is the result of a task, so Dask keeps it in a worker's memory, moves it to disk where there is no room,
and makes it again where a worker is lost. Nothing is pinned, and the client holds descriptions and no rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from certgp.data.files import Layout, open_files
from certgp.data.pieces import Reading, cut, join_skipped
from certgp.data.remote import Chosen, PartsLayout, RemoteRows, Task, join_stored
from certgp.data.rows import Rows
from certgp.data.skipped import Skipped, skipping
from certgp.data.store import StoredRows
from certgp.data.streams import as_stream
from certgp.data.tables import TableFiles
from certgp.engines.dask_cluster import Cluster
from certgp.engines.local import use_one_thread
from certgp.errors import DataFileError

try:
    from dask.sizeof import sizeof
    from distributed import Future
except ImportError as error:  # an extra
    raise ImportError(f"{error}; the Dask engine needs the extra 'dask': pip install 'certgp[dask]'") from error

R = TypeVar("R")
FEW_ROWS = 1 << 15  # are better off in the client: on workers, messages would take longer
PARTITIONS = 64  # at most, so that what moves in an evaluation does not grow with the rows ...
MOST_ROWS = 1 << 22  # ... until one of them holds this many
_READ_RETRIES = 2  # a damaged file stays damaged; one on another machine may come back


@sizeof.register(StoredRows)
def _bytes_of(rows: StoredRows) -> int:
    """What Dask reckons with when it decides where a task runs and what goes to disk."""
    return rows.nbytes


def rows_per_part(n_rows: int, partitions: int | None = None) -> int:
    """Rows of each part; they follow from the number of rows alone, not from the cluster."""
    if partitions is not None:
        return max(1, math.ceil(n_rows / partitions))
    return min(max(math.ceil(n_rows / PARTITIONS), FEW_ROWS), MOST_ROWS)


class DaskParts:
    """Parts of rows as futures."""

    def __init__(
        self, cluster: Cluster, futures: Sequence[Future], counts: Sequence[int], partitions: int | None = None
    ) -> None:
        self.cluster, self.futures, self.counts = cluster, list(futures), tuple(counts)
        self._partitions = partitions

    def run(self, task: Task[R], chosen: Chosen) -> Iterator[R]:
        """task(part, argument) for the chosen parts, on the workers; results come in this order."""
        submit, job = self.cluster.submit, self.cluster.keep(task)
        parts = [self.futures[i] for i, _ in chosen]
        holders = self.cluster.attempt(partial(self.cluster.holders, parts))
        places = zip(parts, chosen, holders, strict=True)
        return self.cluster.in_order(
            [partial(submit, _run, job, part, argument, near=near) for part, (_, argument), near in places]
        )

    def picked(self, task: Task[StoredRows], groups: Sequence[Chosen], counts: Sequence[int]) -> DaskParts:
        """New parts on the workers: task(part, argument) of each group's members, joined."""
        futures = self.cluster.attempt(partial(self._pick, task, groups))
        return DaskParts(self.cluster, futures, counts, self._partitions)

    def _pick(self, task: Task[StoredRows], groups: Sequence[Chosen]) -> list[Future]:
        submit, job = self.cluster.submit, self.cluster.keep(task)
        futures = []
        for group in groups:
            members = [submit(_run, job, self.futures[i], argument) for i, argument in group]
            futures.append(members[0] if len(members) == 1 else submit(join_stored, members))
        return futures

    def rows_per_part(self, n_rows: int) -> int | None:
        """None for so few rows that they had better come to the client."""
        return None if n_rows <= FEW_ROWS else rows_per_part(n_rows, self._partitions)


def read_source(
    cluster: Cluster,
    partitions: int | None,
    source: Any,
    target: str | None,
    inputs: Sequence[str] | None,
    drop: Sequence[str],
    weights: str | None,
    on_bad_rows: str,
    dtype: str,
) -> Rows:
    """Rows of files, or of a Dask frame or array, on the workers."""
    skipped = skipping(on_bad_rows)
    stream = as_stream(source)
    if stream is not None and stream.delayed is not None:
        layout = Layout.of(stream.names, target, weights, inputs, drop)
        names = None if stream.nameless else layout.inputs
        reading = Reading(layout, names, skipped is not None, np.dtype(np.float64))
        held = cluster.client.compute(stream.delayed(list(layout.columns)))
        futures = [
            cluster.submit(reading.decode_batch, each, f"partition {i} of {stream.what}", retries=_READ_RETRIES)
            for i, each in enumerate(held)
        ]
        rows = _hold(cluster, futures, reading, skipped, partitions)
    else:
        files, layout = open_files(source, skipped, target, weights, inputs, drop)
        rows = read_files(cluster, partitions, files, layout, dtype)
    if skipped is not None:
        skipped.warn()
    return rows


def read_files(
    cluster: Cluster, partitions: int | None, files: TableFiles, layout: Layout, dtype: str = "auto"
) -> Rows:
    """The rows of files, which the workers read."""
    files.require(layout.columns)
    files = files.absolute()  # workers run in folders of their own
    reading = Reading.of(files, layout, dtype)
    submit = partial(cluster.submit, reading.count, retries=_READ_RETRIES)
    counted = list(cluster.in_order([partial(submit, file) for file in files.files]))
    skipped = join_skipped([each for _, each in counted], files.skipped)
    counts = [(file, count) for file, (count, _) in zip(files.files, counted, strict=True)]
    n_rows = sum(count for _, count in counts)
    if n_rows == 0:
        raise DataFileError(f"{files.files[0]} has no rows that can be used; at least one is needed")
    parts = cut(counts, rows_per_part(n_rows, partitions))
    futures = [cluster.submit(reading.decode, pieces, retries=_READ_RETRIES) for pieces in parts]
    return _hold(cluster, futures, reading, skipped, partitions)


def _hold(
    cluster: Cluster, futures: list[Future], reading: Reading, skipped: Skipped | None, partitions: int | None
) -> Rows:
    """Rows of decoded parts; few of them come here."""
    counts = list(cluster.in_order([partial(cluster.submit, _count, future) for future in futures]))
    layout = reading.layout
    parts = DaskParts(cluster, futures, counts, partitions)
    rows = RemoteRows(parts, PartsLayout(len(layout.inputs), reading.names, layout.weights is not None), skipped)
    return rows if rows.n_rows > FEW_ROWS else rows.pick(np.arange(rows.n_rows))


def _count(part: StoredRows) -> int:
    return part.n_rows


def _run(task: Task[R], part: StoredRows, argument: Any) -> R:
    use_one_thread()
    return task(part, argument)
