"""A connection to a Dask cluster that outlives its workers: tasks are run again, and what cannot be is said."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from certgp.engines.local import use_one_thread
from certgp.errors import ClusterError, InvalidInputError

try:
    import distributed
    from distributed import Client, Future, WorkerPlugin
    from threadpoolctl import threadpool_limits
except ImportError as error:  # an extra
    raise ImportError(f"{error}; the Dask engine needs the extra 'dask': pip install 'certgp[dask]'") from error

R = TypeVar("R")
RETRIES = 10  # of a task, or of a pass whose rows a lost worker took along
_PATIENCE = 30  # seconds for a scheduler to answer
_RETURN = 300  # seconds for a worker in the place of a lost one
_AHEAD = 32  # tasks whose results may wait for their turn
_LOOK = "their logs say why they end (memory, most of the time): give them more of it, or start more workers"


class Cluster:
    """A client that has told the workers about threads."""

    def __init__(self, cluster: Client | str) -> None:
        self.client = _connect(cluster)

    def submit(
        self, task: Callable[..., Any], *arguments: Any, retries: int = RETRIES, near: Sequence[str] = ()
    ) -> Future:
        """A future of task(*arguments), among which there may be futures and lists of them. It runs on one of the
        workers ``near``, as long as there is one: Dask might move rows to the worker that holds the task.
        """
        places = {"workers": list(near), "allow_other_workers": True} if near else {}
        return self.client.submit(task, *arguments, retries=retries, pure=False, **places)

    def holders(self, futures: Sequence[Future]) -> list[tuple[str, ...]]:
        """The workers that hold the results of these futures; none for those that are yet to be made."""
        found = self.client.who_has(futures)
        return [tuple(found.get(future.key, ())) for future in futures]

    def keep(self, value: Any) -> Future:
        """A future of what is sent once and used by many tasks; as a task of its own, Dask can send it again."""
        return self.client.submit(_keep, value, pure=False)

    def attempt(
        self, action: Callable[[], R], start_anew: Callable[[], None] = lambda: None, needs_workers: bool = True
    ) -> R:
        """What an action gives, which waits for futures or makes some; again, after ``start_anew``, where it lost what
        was sent.
        """
        if needs_workers:
            self._wait_for_workers(None)
        for _ in range(RETRIES):
            try:
                return action()
            except distributed.KilledWorker as error:
                raise ClusterError(f"workers end again and again on the same task ({error}); {_LOOK}") from error
            except (distributed.CancelledError, OSError, TimeoutError) as error:
                self._wait_for_workers(error)
                start_anew()
        raise ClusterError(f"what was sent was lost with its workers {RETRIES} times in one pass; {_LOOK}")

    def in_order(self, submit: Sequence[Callable[[], Future]]) -> Iterator[Any]:
        """Results of futures in their order; so many are under way that nobody waits, and no more."""
        todo = iter(submit)
        running = deque((again, self._start(again)) for again in islice(todo, _AHEAD))
        while running:
            again, future = running.popleft()
            waiting = [future]

            def start_anew(waiting: list[Future] = waiting, again: Callable[[], Future] = again) -> None:
                waiting[0] = self._start(again)

            yield self.attempt(partial(_result, waiting), start_anew)
            del future, waiting
            running.extend((again, self._start(again)) for again in islice(todo, 1))

    def _start(self, submit: Callable[[], Future]) -> Future:
        """A future; making it fails where those that it needs went with the scheduler."""
        return self.attempt(submit, needs_workers=False)

    def _wait_for_workers(self, reason: Exception | None) -> None:
        """Go on once there is a worker; without a scheduler there is nothing to wait for."""
        if self.client.status == "running":
            try:
                self.client.wait_for_workers(1, timeout=_RETURN)
            except (distributed.CancelledError, OSError, RuntimeError, TimeoutError) as error:
                reason = error
            else:
                return
        why = "" if reason is None else f" ({type(reason).__name__})"
        raise ClusterError(
            f"the Dask scheduler or all its workers are gone{why}; start the cluster again and run the same once more: "
            "a fit with a checkpoint goes on where it was"
        ) from reason


class _OneThreadPerTask(WorkerPlugin):
    """As many tasks at a time as a worker has threads: none of them starts threads of its own."""

    name = "certgp-one-thread-per-task"
    idempotent = True

    def setup(self, worker: object) -> None:
        threadpool_limits(1)
        use_one_thread()


def _connect(cluster: Client | str) -> Client:
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
    return value


def _result(waiting: list[Future]) -> Any:
    return waiting[0].result()
