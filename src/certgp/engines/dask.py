"""A Dask cluster: rows lie on its workers, tasks go to them, and sums of the size of the rank come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, Rows, RowSource
from certgp.data.files import Layout
from certgp.data.sources import ChunkSource
from certgp.data.tables import TableFiles
from certgp.engines.base import Summable
from certgp.engines.dask_cluster import Cluster
from certgp.engines.dask_rows import FEW_ROWS, DaskParts, read_files, read_source, rows_per_part
from certgp.engines.local import LocalEngine, default_chunk_rows, even_rows, use_one_thread
from certgp.errors import InvalidInputError

try:
    from dask.sizeof import sizeof
    from distributed import Client, Future
except ImportError as error:  # an extra
    raise ImportError(f"{error}; the Dask engine needs the extra 'dask': pip install 'certgp[dask]'") from error

T = TypeVar("T", bound=Summable)
R = TypeVar("R")
Item = TypeVar("Item")
Make = Callable[[Any], RowSource]
_FAN_IN = 8


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Some rows as plain arrays."""

    X: NDArray[np.floating]
    y: NDArray[np.floating]
    weight: NDArray[np.float64] | None

    @classmethod
    def of(cls, chunk: Chunk) -> _Arrays:
        return cls(chunk.X.numpy(), chunk.y.numpy(), None if chunk.weight is None else chunk.weight.numpy())

    def source(self) -> ChunkSource:
        """The rows as tensors; what came by wire is read-only, which torch does not know."""
        arrays = (self.X, self.y, self.weight)
        writeable = (None if a is None else a if a.flags.writeable else a.copy() for a in arrays)
        X, y, weight = (None if a is None else torch.from_numpy(a) for a in writeable)
        assert X is not None
        assert y is not None
        return ChunkSource(Chunk(X, y, weight))


@sizeof.register(_Arrays)
def _bytes_of(arrays: _Arrays) -> int:
    """What Dask reckons with when it decides where a task runs and what goes to disk."""
    return arrays.X.nbytes + arrays.y.nbytes + (0 if arrays.weight is None else arrays.weight.nbytes)


class DaskEngine:
    """Folds on the workers of a Dask cluster: ``DaskEngine("tcp://host:8786")`` or ``DaskEngine(client)``.

    ``read`` makes rows of files or of Dask's collections that workers decode where they are. Rows of this process are
    sent once. Either way they lie on the workers in at most 64 partitions (more above 2^28 rows), which follow from the
    number of rows alone; sources of at most 2^15 rows stay here. A task goes out once per fold, and the sums of the
    partitions come back through a tree of fan-in 8. So the numbers do not depend on the number of workers, nor on which
    of them are lost on the way: what was lost with a worker is read or sent again.

    Each task runs on one thread. ``chunk_rows`` overrides the rows of a chunk of features, ``partitions`` the number
    of partitions.
    """

    def __init__(self, cluster: Client | str, chunk_rows: int | None = None, partitions: int | None = None) -> None:
        for name, value in (("chunk_rows", chunk_rows), ("partitions", partitions)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidInputError(f"{name} must be a positive whole number or None, found {value!r}")
        self.chunk_rows, self.partitions = chunk_rows, partitions
        self._cluster = Cluster(cluster)
        self._held: WeakKeyDictionary[RowSource, list[Future]] = WeakKeyDictionary()

    def __deepcopy__(self, memo: object) -> Self:
        """A copied estimator works on the same cluster."""
        return self

    @property
    def in_process(self) -> bool:
        """Tasks run on the workers."""
        return False

    def read(
        self,
        source: Any,
        target: str | None = None,
        *,
        inputs: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        weights: str | None = None,
        on_bad_rows: str = "error",
        dtype: str = "auto",
    ) -> Rows:
        """Rows that the workers read themselves, for ``fit``, ``predict`` and all that takes X; as ``certgp.read``, but
        nothing passes through this process but headers, counts, and rows that are asked for.

        Files, folders and globs must have the same names on all machines. A Dask frame or array is used partition by
        partition; persist it where it takes long to make.
        """
        return read_source(self._cluster, self.partitions, source, target, inputs, drop, weights, on_bad_rows, dtype)

    def read_files(self, files: TableFiles, layout: Layout) -> Rows:
        """The same of files that were opened already."""
        return read_files(self._cluster, self.partitions, files, layout)

    def map(self, task: Callable[[Item], R], items: Sequence[Item]) -> Iterator[R]:
        """task(item) on the workers, for tasks that read what they need; results come in the order of the items."""
        job = self._cluster.keep(task)
        return self._cluster.in_order([partial(self._cluster.submit, _call, job, item, retries=2) for item in items])

    def fold(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        """sum over chunks of task(chunk)."""
        if source.n_rows <= FEW_ROWS:
            return LocalEngine(self.chunk_rows).fold(task, source, rank)

        def send_again() -> None:  # what was sent went with a worker, or the worker in the middle of sending
            self._held.pop(source, None)

        return self._cluster.attempt(partial(self._fold_once, task, source, rank), send_again)

    def _fold_once(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        submit = self._cluster.submit
        partitions, make = self._partitions_of(source)
        job = self._cluster.keep((task, make, torch.is_grad_enabled()))
        rows = self.chunk_rows or default_chunk_rows(rank)
        places = zip(partitions, self._cluster.holders(partitions), strict=True)
        sums = [submit(_fold_partition, job, part, rows, near=near) for part, near in places]
        while len(sums) > 1:
            sums = [submit(_add_all, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        found: T = sums[0].result()
        return found

    def _partitions_of(self, source: RowSource) -> tuple[list[Future], Make]:
        """Futures of the rows of a source, and what makes a source of one; rows that are sent stay on the workers as
        long as the source is there.
        """
        elsewhere = source.elsewhere
        if elsewhere is not None:
            assert isinstance(elsewhere.rows.parts, DaskParts)
            return elsewhere.rows.parts.futures, elsewhere.make
        if source not in self._held:
            rows = rows_per_part(source.n_rows, self.partitions)
            parts = [slice(start, min(start + rows, source.n_rows)) for start in range(0, source.n_rows, rows)]
            scatter = self._cluster.client.scatter
            self._held[source] = [scatter([_Arrays.of(source.take(part))], hash=False)[0] for part in parts]
        return self._held[source], _Arrays.source


def _fold_partition(job: tuple[Callable[[Chunk], T], Make, bool], held: Any, most: int) -> T:
    """The sum of a task over the chunks of one partition, in their order and on one thread."""
    task, make, with_gradients = job
    use_one_thread()
    rows = make(held)
    with torch.set_grad_enabled(with_gradients):
        return reduce(add, map(task, rows.chunks(even_rows(rows.n_rows, most))))


def _add_all(sums: Sequence[T]) -> T:
    return reduce(add, sums)


def _call(task: Callable[[Item], R], item: Item) -> R:
    use_one_thread()
    return task(item)
