"""An engine over Ray: ``make recipes`` runs this file where Ray is installed.

An engine is any object with ``in_process`` and ``fold``. Chunks of rows lie in Ray's object store, a task goes out once
per fold, and its sums (``Statistics``, gradients, what certificates need) merge by ``+`` in a tree of fixed shape, so
the numbers do not depend on the number of workers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import ray
import torch

FAN_IN = 8


@ray.remote
def run(task: Callable[[Any], Any], chunk: Any, with_gradients: bool) -> Any:
    torch.set_num_threads(1)
    with torch.set_grad_enabled(with_gradients):
        return task(chunk)


@ray.remote
def merge(*sums: Any) -> Any:
    return reduce(add, sums)


class RayEngine:
    """``MercerGP(engine=RayEngine())``."""

    in_process = False

    def __init__(self, chunk_rows: int = 8_192) -> None:
        self.chunk_rows = chunk_rows
        self._held: weakref.WeakKeyDictionary[Any, Sequence[Any]] = weakref.WeakKeyDictionary()

    def fold(self, task: Callable[[Any], Any], source: Any, rank: int) -> Any:
        """sum over chunks of task(chunk)."""
        if source not in self._held:  # rows go out once, not once per fold
            self._held[source] = [ray.put(chunk) for chunk in source.chunks(self.chunk_rows)]
        job = ray.put(task)
        sums = [run.remote(job, chunk, torch.is_grad_enabled()) for chunk in self._held[source]]
        while len(sums) > 1:
            sums = [merge.remote(*sums[i : i + FAN_IN]) for i in range(0, len(sums), FAN_IN)]
        return ray.get(sums[0])


if __name__ == "__main__":
    from rows import check

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    check(RayEngine())
