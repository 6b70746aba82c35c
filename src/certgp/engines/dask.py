"""A Dask cluster: rows lie on its workers, tasks go to them, and sums of the size of the rank come back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, RowSource
from certgp.data.sources import ChunkSource
from certgp.engines.base import Summable
from certgp.engines.local import LocalEngine, default_chunk_rows, even_rows, use_one_thread
from certgp.errors import ClusterError, InvalidInputError

try:
    import distributed
    from dask.sizeof import sizeof
    from distributed import Client, Future, WorkerPlugin
    from threadpoolctl import threadpool_limits
except ImportError as error:  # an extra
    raise ImportError(f"{error}; the Dask engine needs the extra 'dask': pip install 'certgp[dask]'") from error

T = TypeVar("T", bound=Summable)
FEW_ROWS = 1 << 15  # are folded where they are: on workers, messages would take longer
PARTITIONS = 64  # at most, so that what moves in an evaluation does not grow with the rows ...
MOST_ROWS = 1 << 22  # ... until one of them holds this many
_FAN_IN = 8
_RETRIES = 10  # of a task, or of a pass whose rows a lost worker took along
_PATIENCE = 30  # seconds for a scheduler to answer
_RETURN = 300  # seconds for a worker in the place of a lost one
_LOOK = "their logs say why they end (memory, most of the time): give them more of it, or start more workers"


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

    The rows of a source lie on the workers in at most 64 partitions (more above 2^28 rows), which follow from the
    number of rows alone; sources of at most 2^15 rows stay here. A task goes out once per fold, and the sums of the
    partitions come back through a tree of fan-in 8. So the numbers do not depend on the number of workers, nor on which
    of them are lost on the way: rows that are lost with a worker are sent again.

    Each task runs on one thread. ``chunk_rows`` overrides the rows of a chunk of features, ``partitions`` the number
    of partitions.
    """

    def __init__(self, cluster: Client | str, chunk_rows: int | None = None, partitions: int | None = None) -> None:
        for name, value in (("chunk_rows", chunk_rows), ("partitions", partitions)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidInputError(f"{name} must be a positive whole number or None, found {value!r}")
        self.chunk_rows, self.partitions = chunk_rows, partitions
        self._client = _connect(cluster)
        self._held: WeakKeyDictionary[RowSource, list[Future]] = WeakKeyDictionary()

    @property
    def in_process(self) -> bool:
        """Tasks run on the workers."""
        return False

    def fold(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        """sum over chunks of task(chunk)."""
        if source.n_rows <= FEW_ROWS:
            return LocalEngine(self.chunk_rows).fold(task, source, rank)
        self._wait_for_workers(None)
        for _ in range(_RETRIES):
            try:
                return self._fold_once(task, self._partitions_of(source), rank)
            except distributed.KilledWorker as error:
                raise ClusterError(f"workers end again and again on the same task ({error}); {_LOOK}") from error
            except (distributed.CancelledError, OSError, TimeoutError) as error:
                # rows that were sent went with a worker, or the worker in the middle of sending: send them again
                self._held.pop(source, None)
                self._wait_for_workers(error)
        raise ClusterError(f"the rows were lost with their workers {_RETRIES} times in one pass; {_LOOK}")

    def _wait_for_workers(self, reason: Exception | None) -> None:
        """Go on once there is a worker; without a scheduler there is nothing to wait for."""
        if self._client.status == "running":
            try:
                self._client.wait_for_workers(1, timeout=_RETURN)
            except (OSError, TimeoutError) as error:
                reason = error
            else:
                return
        why = "" if reason is None else f" ({type(reason).__name__}: {reason})"
        raise ClusterError(
            f"the Dask scheduler or all its workers are gone{why}; start the cluster again and fit with the same "
            "arguments: with a checkpoint the fit goes on where it was"
        ) from reason

    def _fold_once(self, task: Callable[[Chunk], T], partitions: Sequence[Future], rank: int) -> T:
        submit = self._client.submit
        job = submit(_keep, (task, torch.is_grad_enabled()), pure=False)
        rows = self.chunk_rows or default_chunk_rows(rank)
        sums = [submit(_fold_partition, job, part, rows, retries=_RETRIES, pure=False) for part in partitions]
        while len(sums) > 1:
            groups = [sums[i : i + _FAN_IN] for i in range(0, len(sums), _FAN_IN)]
            sums = [submit(_add_all, group, retries=_RETRIES, pure=False) for group in groups]
        found: T = sums[0].result()
        return found

    def _partitions_of(self, source: RowSource) -> list[Future]:
        """Futures of the rows of a source in parts of equal size; they stay on the workers as long as the source."""
        if source not in self._held:
            rows = min(max(math.ceil(source.n_rows / PARTITIONS), FEW_ROWS), MOST_ROWS)
            rows = rows if self.partitions is None else math.ceil(source.n_rows / self.partitions)
            parts = [slice(start, min(start + rows, source.n_rows)) for start in range(0, source.n_rows, rows)]
            self._held[source] = self._send(source, parts)
        return self._held[source]

    def _send(self, source: RowSource, parts: Sequence[slice]) -> list[Future]:
        return [self._client.scatter([_Arrays.of(source.take(part))], hash=False)[0] for part in parts]


class _OneThreadPerTask(WorkerPlugin):
    """As many tasks at a time as a worker has threads: none of them starts threads of its own."""

    name = "certgp-one-thread-per-task"
    idempotent = True

    def setup(self, worker: object) -> None:
        threadpool_limits(1)


def _connect(cluster: Client | str) -> Client:
    """A client of this cluster that has told the workers about threads."""
    if isinstance(cluster, str):
        try:
            cluster = Client(cluster, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {cluster!r} ({error}); start one with 'dask scheduler' and workers with "
                "'dask worker ADDRESS', and give the address it prints"
            ) from error
    if not isinstance(cluster, Client):
        raise InvalidInputError(
            f"cluster must be a distributed.Client or the address of a scheduler ('tcp://host:8786'), found {cluster!r}"
        )
    cluster.register_plugin(_OneThreadPerTask())
    return cluster


def _keep(value: Any) -> Any:
    """A future of what is sent once and used by many tasks; as a task of its own, Dask can send it again."""
    return value


def _fold_partition(job: tuple[Callable[[Chunk], T], bool], arrays: _Arrays, most: int) -> T:
    """The sum of a task over the chunks of one partition, in their order and on one thread."""
    task, with_gradients = job
    rows = arrays.source()
    use_one_thread()
    with torch.set_grad_enabled(with_gradients):
        return reduce(add, map(task, rows.chunks(even_rows(rows.n_rows, most))))


def _add_all(sums: Sequence[T]) -> T:
    return reduce(add, sums)
