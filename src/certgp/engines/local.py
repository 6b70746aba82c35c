"""One machine: as many chunks at a time as torch has threads, each on one of them."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from itertools import chain, islice
from operator import add
from typing import TypeVar

import torch

from certgp.data import Chunk, RowSource
from certgp.engines.base import Summable
from certgp.errors import InvalidInputError

T = TypeVar("T", bound=Summable)
Item = TypeVar("Item")
_CHUNK_NUMBERS = 2**18  # of a chunk of features (2 MiB in float64, near a cache), where that is not too few rows
_CHUNK_ROWS = 8192  # below this, the cost of starting small operations shows (docs/decisions/0010, 0011) ...
_MOST_NUMBERS = 2**22  # ... but a chunk stays below 32 MiB, above which allocators return memory to the system

_SMALL = 512


def default_chunk_rows(rank: int) -> int:
    """Rows per chunk of features (rows, rank): between 1024 and 65536 (docs/decisions/0011)."""
    rows = max(_CHUNK_NUMBERS // max(rank, 1), min(_CHUNK_ROWS, _MOST_NUMBERS // max(rank, 1)))
    return int(min(max(rows, 1024), 65_536))


@dataclass(frozen=True)
class LocalEngine:
    """A fold on the threads of this process; ``chunk_rows`` overrides the size of a chunk.

    The result does not depend on it beyond rounding, and not at all on the number of threads.
    """

    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        rows = self.chunk_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise InvalidInputError(f"chunk_rows must be a positive whole number or None, found {rows!r}")

    @property
    def in_process(self) -> bool:
        """Tasks run in this process."""
        return True

    def fold(self, task: Callable[[Chunk], T], source: RowSource, rank: int) -> T:
        """sum over chunks of task(chunk)."""
        if source.elsewhere is not None:
            raise InvalidInputError(
                "the rows lie on a cluster and engine='local' folds here; give the estimator the engine that read them "
                "(engine=), or read them here (certgp.read)"
            )
        return sum_over(task, source.chunks(self.chunk_rows or even_rows(source.n_rows, default_chunk_rows(rank))))


def even_rows(n: int, most: int) -> int:
    """Rows of equal chunks of at most ``most`` rows: no thread is left with a large one while others are done."""
    return math.ceil(n / max(1, math.ceil(n / most)))


def sum_over(task: Callable[[Item], T], items: Iterable[Item]) -> T:
    """sum over items of task(item), in their order.

    Each task runs on a single thread, and as many at a time as torch has threads: tasks meet once a fold, where threads
    inside an operation meet at each of them. So two cores are nearly twice as fast as one, nobody waits spinning, and
    the numbers are the same on any number of cores.
    """
    return reduce(add, _run_on_threads(task, items, torch.get_num_threads()))


def _run_on_threads(task: Callable[[Item], T], items: Iterable[Item], threads: int) -> Iterator[T]:
    """Results in the order of the items; at most one more than ``threads`` of them are held at a time."""
    grad = torch.is_grad_enabled()  # belongs to a thread, so workers have to be told

    def run(item: Item) -> T:
        with torch.set_grad_enabled(grad):
            return task(item)

    remaining = iter(items)
    first = list(islice(remaining, 2))
    try:
        if threads == 1 or len(first) == 1:
            torch.set_num_threads(1)
            yield from map(task, chain(first, remaining))
            return
        pool, todo = _pool(threads), chain(first, remaining)
        running = deque(pool.submit(run, item) for item in islice(todo, threads + 1))
        try:
            while running:
                result = running[0].result()
                running.popleft()
                running.extend(pool.submit(run, item) for item in islice(todo, 1))
                yield result
        finally:  # after an error nothing goes on behind the caller's back
            for left in running:
                left.cancel()
            wait(running)
    finally:
        torch.set_num_threads(threads)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones would begin each fold with memory of their own to be paged in."""
    return ThreadPoolExecutor(threads, "certgp", initializer=use_one_thread)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


@contextmanager
def one_thread_below(size: int, most: int = _SMALL) -> Iterator[None]:
    """A single thread for what is too small to be shared out: algebra on r x r matrices, batches of a few hundred rows.

    Threads that meet after each such operation cost more than they save (docs/decisions/0011, 0017).
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if size <= most else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def use_one_thread() -> None:
    """Operations that this thread asks torch for run on it alone."""
    torch.get_num_threads()  # a thread's first use of torch sets its number, which would overrule the next line
    torch.set_num_threads(1)
