"""What ``scaling.py`` measures of clusters, and of the cost of a pass by rank."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

RANKS = (25, 50, 100, 200, 400)  # the last one is not fitted to
_EVALUATIONS = 2
_PARTITIONS = 16  # below 64, so that smaller files have as many


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(workers)
        yield client


def objective_there(client: Any, files: list[str], features: Any, partitions: int | None = None) -> tuple[Any, Any]:
    """An objective over rows that the workers have read, and the engine."""
    from certgp.data import StandardisedRows, Standardiser, summarise
    from certgp.engines.dask import DaskEngine
    from certgp.training.full_batch.objective import LowRankObjective

    engine = DaskEngine(client, partitions=partitions)
    rows = engine.read(files, target="y")
    source = StandardisedRows(rows, Standardiser.of(summarise(rows)))
    return LowRankObjective(features, source, engine, "marginal"), engine


def outgoing(dask_worker: Any) -> int:
    """Bytes that a worker has sent to others, to the scheduler and through it to the client."""
    return int(sum(each["total"] for each in dask_worker.transfer_outgoing_log))


def cpu_seconds(dask_worker: Any) -> float:
    return time.process_time()


def measure_bytes(features: Any, sizes: dict[int, list[str]]) -> dict[str, object]:
    """Bytes of one evaluation (value and gradient): what the client sends, and what the workers do."""
    import cloudpickle

    found: dict[str, object] = {}
    with cluster_of(2) as client:
        for rows, files in sizes.items():
            objective, engine = objective_there(client, files, features, _PARTITIONS)
            start = objective.start()
            objective.evaluate(start)
            sent: list[int] = []
            keep = engine._cluster.keep

            def counted(value: Any, sent: list[int] = sent, keep: Any = keep) -> Any:
                sent.append(len(cloudpickle.dumps(value)))
                return keep(value)

            engine._cluster.keep = counted
            before = sum(client.run(outgoing).values())
            objective.evaluate(start)
            time.sleep(1.0)
            found[f"client_sends_{rows}"] = sum(sent)
            found[f"workers_send_{rows}"] = sum(client.run(outgoing).values()) - before
            found[f"partitions_{rows}"] = len(objective.folds.source.elsewhere.rows.parts.counts)
            del objective, engine
    return found


def measure_workers(features: Any, files: list[str]) -> dict[str, object]:
    """Seconds of an evaluation on one worker and on two, in turn: the least of some, by the clock, and of the busiest
    worker's processor.
    """
    clock: dict[int, list[float]] = {1: [], 2: []}
    busiest: dict[int, list[float]] = {1: [], 2: []}
    values = {}
    with cluster_of(1) as one, cluster_of(2) as two:
        clients = {1: one, 2: two}
        objectives = {n: objective_there(client, files, features)[0] for n, client in clients.items()}
        start = objectives[1].start()
        for number in range(_EVALUATIONS + 1):
            for n, objective in objectives.items():
                before = clients[n].run(cpu_seconds)
                began = time.perf_counter()
                value, gradient = objective.evaluate(start)
                if number:  # the first one warms up
                    clock[n].append(time.perf_counter() - began)
                    after = clients[n].run(cpu_seconds)
                    busiest[n].append(max(after[each] - before[each] for each in after))
                values[n] = (value, gradient.tolist())
    return {
        "clock_seconds": clock,
        "busiest_worker_seconds": busiest,
        "clock_ratio": min(clock[2]) / min(clock[1]),
        "processor_ratio": float(np.median(busiest[2]) / np.median(busiest[1])),
        "bit_equal": values[1] == values[2],
    }


def measure_cost(files: list[str], fitted: Any) -> dict[str, object]:
    """Processor microseconds per row of a pass and of an evaluation by rank; c0 + c1 r + c2 r^2 fitted to all ranks but
    the last, and what it says of that one.
    """
    import certgp
    from certgp.data import StandardisedRows, Standardiser, summarise
    from certgp.engines import LocalEngine, fold_feature_statistics
    from certgp.training.full_batch.objective import LowRankObjective

    rows = certgp.read(files, target="y")
    source = StandardisedRows(rows, Standardiser.of(summarise(rows)))
    passes, evaluations = [], []
    for rank in RANKS:
        model = fitted(rank)
        objective = LowRankObjective(model.requires_grad_(True), source, LocalEngine(), "marginal")
        start = objective.start()
        for run, into in (
            (lambda model=model: fold_feature_statistics(model, source, LocalEngine()), passes),
            (lambda objective=objective, start=start: objective.evaluate(start), evaluations),
        ):
            times = []
            for _ in range(3):
                began = time.process_time()
                run()
                times.append(time.process_time() - began)
            into.append(1e6 * min(times) / rows.n_rows)
    found: dict[str, object] = {"ranks": RANKS, "pass": passes, "evaluation": evaluations}
    for word, measured in (("pass", passes), ("evaluation", evaluations)):
        powers = np.vander(RANKS, 3, increasing=True) / np.array(measured)[:, None]  # relative errors
        constants = np.linalg.lstsq(powers[:-1], np.ones(len(RANKS) - 1), rcond=None)[0]
        found[f"{word}_constants"] = constants.tolist()
        found[f"{word}_predicted_over_measured_at_{RANKS[-1]}"] = float(powers[-1] @ constants)
    return found
