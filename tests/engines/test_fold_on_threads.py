"""Folds on several threads: the same numbers, the caller's settings, errors that end the fold, bounded memory."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine, one_thread_below, sum_over
from certgp.features import NystromMap
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective
from helpers import identity_model, random_inputs, random_target


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def evaluation():
    X = random_inputs(0, 700, 2)
    model = identity_model(NystromMap(Gaussian(0.7), X[:30], jitter=1e-4))
    objective = LowRankObjective(model, ChunkSource(Chunk(X, random_target(X, 1))), LocalEngine(64), "elbo")
    value, gradient = objective.evaluate(objective.start())
    return np.append(gradient, value)


def test_the_number_of_threads_does_not_change_a_bit(threads):
    found = evaluation()
    torch.set_num_threads(1)
    np.testing.assert_array_equal(found, evaluation())


def test_tasks_run_on_single_threads_as_many_at_a_time_as_torch_has(threads):
    meeting = threading.Barrier(threads, timeout=10)

    def task(item):
        meeting.wait()  # all threads must be here at once
        return np.array([torch.get_num_threads(), item])

    count = 6  # a multiple of all numbers of threads
    seen = sum_over(task, range(count))
    assert seen.tolist() == [count, 15]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("items", [1, 5])
@pytest.mark.parametrize("enabled", [True, False])
def test_the_callers_grad_mode_holds_in_every_task(threads, items, enabled):
    with torch.set_grad_enabled(enabled):
        seen = sum_over(lambda _: np.array([torch.is_grad_enabled()], dtype=int), range(items))
    assert seen.tolist() == [items * enabled]


def test_an_error_ends_the_fold_and_leaves_nothing_running(threads):
    begun = []

    def task(item):
        begun.append(item)
        if item == 3:
            raise ZeroDivisionError("item 3")
        return np.zeros(1)

    with pytest.raises(ZeroDivisionError, match="item 3"):
        sum_over(task, range(1_000))
    assert len(begun) <= 3 + 1 + 2 * threads
    assert torch.get_num_threads() == threads
    assert sum_over(lambda item: np.array([item]), range(4)).tolist() == [6]


def test_items_are_drawn_as_they_are_needed(threads):
    drawn = []

    def items():
        for item in range(50):
            drawn.append(item)
            yield item

    def task(item):
        assert len(drawn) - item <= threads + 2
        return np.array([item])

    assert sum_over(task, items()).tolist() == [1225]


def _in_child(queue):
    torch.set_num_threads(2)
    queue.put(sum_over(lambda item: np.array([item]), range(5)).tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking with threads, which is the point here
def test_a_forked_process_has_threads_of_its_own():
    torch.set_num_threads(2)
    try:
        assert sum_over(lambda item: np.array([item]), range(5)).tolist() == [10]
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=_in_child, args=(queue,))
        child.start()
        child.join(timeout=30)
        assert child.exitcode == 0
        assert queue.get() == [10]
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(("rank", "inside"), [(10, 1), (5_000, 2)])
def test_small_matrices_are_not_shared_out(rank, inside):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread_below(rank):
            assert torch.get_num_threads() == inside
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
