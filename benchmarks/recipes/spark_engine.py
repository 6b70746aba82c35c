"""An engine over Spark: ``make recipes`` runs this file where PySpark and Java are installed.

An engine is any object with ``in_process`` and ``fold``. Chunks of rows are a cached RDD, a task goes out once per fold
as a broadcast variable, and its sums merge by ``+``. Spark's own ``treeReduce`` merges what comes first, so sums come
with their number and are added in its order: the numbers do not depend on the number of workers.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import torch
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer

FAN_IN = 8


def run(job: Any, with_gradients: bool, numbered: tuple[int, bytes]) -> tuple[int, bytes]:
    torch.set_num_threads(1)
    pickled = CloudPickleSerializer()
    number, chunk = numbered
    with torch.set_grad_enabled(with_gradients):
        return number, pickled.dumps(pickled.loads(job.value)(pickled.loads(chunk)))


def merge(group: tuple[int, Any]) -> tuple[int, bytes]:
    pickled = CloudPickleSerializer()
    return group[0], pickled.dumps(reduce(add, (pickled.loads(each) for _, each in sorted(group[1]))))


class SparkEngine:
    """``MercerGP(engine=SparkEngine(sc))``."""

    in_process = False

    def __init__(self, context: SparkContext, chunk_rows: int = 8_192) -> None:
        self.context, self.chunk_rows = context, chunk_rows
        self._held: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def fold(self, task: Callable[[Any], Any], source: Any, rank: int) -> Any:
        """sum over chunks of task(chunk)."""
        pickled = CloudPickleSerializer()
        if source not in self._held:  # rows go out once, not once per fold
            chunks = [pickled.dumps(chunk) for chunk in source.chunks(self.chunk_rows)]
            numbered = list(enumerate(chunks))
            self._held[source] = (self.context.parallelize(numbered, min(len(chunks), 64)).cache(), len(chunks))
        rows, count = self._held[source]
        job, with_gradients = self.context.broadcast(pickled.dumps(task)), torch.is_grad_enabled()
        sums = rows.map(lambda numbered: run(job, with_gradients, numbered))
        while count > 1:
            sums = sums.map(lambda pair: (pair[0] // FAN_IN, pair)).groupByKey().map(merge)
            count = -(-count // FAN_IN)
        return pickled.loads(sums.collect()[0][1])


if __name__ == "__main__":
    from rows import check

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of another Python lack certgp
    with SparkContext("local[2]", "certgp") as context:
        context.setLogLevel("ERROR")
        check(SparkEngine(context))
