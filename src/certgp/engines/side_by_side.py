"""Independent tasks at the same time, each on one thread in a process of its own."""

from __future__ import annotations

import multiprocessing
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import joblib
import torch

from certgp.errors import CertgpWarning, warn_user

T = TypeVar("T")
_Caught = list[tuple[str, type[Warning]]]


def spare_workers(tasks: int) -> int:
    """How many of these tasks may run at a time: torch's threads, shared out one by one.

    So ``torch.set_num_threads(1)`` asks for one after the other, and so does a process that another pool started:
    joblib leaves its workers one thread each.
    """
    if multiprocessing.current_process().daemon:  # may not have children
        return 1
    return max(1, min(tasks, torch.get_num_threads(), int(joblib.cpu_count())))


def run_side_by_side(tasks: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """Results of the tasks in their order; the same numbers, errors and warnings as one after the other on one thread.

    Tasks and results travel pickled (cloudpickle, so classes and functions of a script or a notebook do too) and large
    arrays of a task as memory maps that all processes share. What cannot travel is run here. An error, Ctrl-C included,
    ends the other processes.
    """
    if workers == 1:
        return [task() for task in tasks]
    try:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            pairs = joblib.Parallel(n_jobs=workers)(joblib.delayed(_run_on_one_thread)(task) for task in tasks)
    except pickle.PicklingError:
        return [task() for task in tasks]
    for _, caught in pairs:
        _repeat_warnings(caught)
    return [result for result, _ in pairs]


def _run_on_one_thread(task: Callable[[], T]) -> tuple[T, _Caught]:
    """A task's result and the warnings that it gave."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = task()
    finally:
        torch.set_num_threads(before)
    return result, [(str(each.message), each.category) for each in caught]


def _repeat_warnings(caught: _Caught) -> None:
    """Give the warnings of another process here, where the user's filters are."""
    for message, category in caught:
        if issubclass(category, CertgpWarning):
            warn_user(message, category)
        else:
            warnings.warn(message, category, stacklevel=3)
