"""Independent tasks in processes of their own: order, threads, errors, warnings, shared rows, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import partial

import numpy as np
import psutil
import pytest
import torch

from certgp.engines import run_side_by_side, spare_workers
from certgp.errors import ConvergenceWarning, InvalidInputError, warn_user


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def about(rows: np.ndarray, number: int) -> tuple[int, int, int, bool, float]:
    shared = isinstance(rows.base, np.memmap) or isinstance(rows, np.memmap)
    return number, os.getpid(), torch.get_num_threads(), shared, float(rows.sum())


def test_results_come_in_order_from_other_processes_on_one_thread_that_share_the_rows(two_threads):
    rows = np.ones(400_000)
    found = run_side_by_side([partial(about, rows, i) for i in range(4)], 2)
    assert [number for number, *_ in found] == [0, 1, 2, 3]
    assert os.getpid() not in {process for _, process, *_ in found}
    assert {threads for _, _, threads, *_ in found} == {1}
    assert all(shared for *_, shared, _ in found)
    assert {total for *_, total in found} == {400_000.0}
    assert torch.get_num_threads() == 2


def test_one_worker_is_this_process():
    assert run_side_by_side([os.getpid, os.getpid], 1) == [os.getpid()] * 2


def warn(number: int) -> int:
    warn_user(f"task {number} stopped early", ConvergenceWarning)
    warnings.warn("and another", FutureWarning, stacklevel=1)
    return number


def test_warnings_are_given_here():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert run_side_by_side([partial(warn, i) for i in range(2)], 2) == [0, 1]
    expected = [text for i in (0, 1) for text in (f"task {i} stopped early", "and another")]
    assert [str(each.message) for each in seen] == expected
    assert [each.category for each in seen] == [ConvergenceWarning, FutureWarning] * 2


def refuse(number: int) -> int:
    if number == 1:
        raise InvalidInputError("network has no weights; give some")
    return number


def test_an_error_is_raised_as_it_was():
    with pytest.raises(InvalidInputError, match=r"^network has no weights; give some$"):
        run_side_by_side([partial(refuse, i) for i in range(3)], 2)


class Unpicklable:
    """A task that cannot travel."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self) -> int:
        return os.getpid()


def test_what_cannot_travel_runs_here():
    assert run_side_by_side([Unpicklable(), Unpicklable()], 2) == [os.getpid()] * 2


def test_workers_share_torchs_threads(two_threads, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert (spare_workers(1), spare_workers(2), spare_workers(5)) == (1, 2, 2)
    torch.set_num_threads(1)
    assert spare_workers(5) == 1


SCRIPT = """
import time
from functools import partial
from certgp.engines import run_side_by_side
print("ready", flush=True)
try:
    run_side_by_side([partial(time.sleep, 60)] * 2, 2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(30)
"""


def test_ctrl_c_ends_the_other_processes():
    """The signal goes to the parent alone; a terminal would send it to all."""
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout.readline() == "ready\n"
        workers = _until(lambda: [c for c in psutil.Process(parent.pid).children() if "LokyProcess" in _line(c)])
        time.sleep(0.5)
        parent.send_signal(signal.SIGINT)
        assert parent.stdout.readline() == "interrupted\n"
        _until(lambda: not any(worker.is_running() and worker.status() != "zombie" for worker in workers))
    finally:
        parent.kill()
        parent.communicate()


def _line(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def _until(found, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")
