"""The plan multiplies the right functions, whatever the index set; so does its compiled reverse sweep."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.kernels import Gaussian
from certgp.kernels.products import ProductPlan
from helpers import random_inputs, tensor


@st.composite
def index_sets(draw):
    """Any set of multi-indices: with holes, unsorted."""
    dimension = draw(st.integers(1, 5))
    row = st.tuples(*[st.integers(0, 4)] * dimension)
    return np.array(draw(st.lists(row, min_size=1, max_size=12, unique=True)), dtype=np.int64)


def followed(plan: ProductPlan, tables: list[np.ndarray]) -> np.ndarray:
    """The plan's products of these tables, step by step."""
    rows = [np.ones(tables[0].shape[1]), *np.concatenate(tables)]
    for first, second in zip(plan.first, plan.second, strict=True):
        rows.append(rows[first] * rows[second])
    return np.stack(rows[-plan.size :])


def check(indices: np.ndarray) -> None:
    plan, rng = ProductPlan.of(indices), np.random.default_rng(0)
    tables = [rng.standard_normal((count, 3)) for count in plan.counts]
    gathered = [table[column] for table, column in zip(tables, indices.T, strict=True)]
    np.testing.assert_allclose(followed(plan, tables), np.prod(gathered, axis=0), rtol=1e-14)
    assert plan.counts == tuple(indices.max(0) + 1)


@given(indices=index_sets())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_products_are_those_of_the_index_set(indices):
    check(indices)


def test_many_dimensions_are_split_at_once():
    """One degree in each of sixty dimensions: trying every split would never end."""
    check(np.eye(60, dtype=np.int64))


def functions(x: torch.Tensor, length_scale: torch.Tensor, input_scale: torch.Tensor, indices: np.ndarray):
    return Gaussian(length_scale).mercer(input_scale).weighted_functions(x, ProductPlan.of(indices))


def arguments(dimension: int, points: int) -> list[torch.Tensor]:
    return [random_inputs(0, points, dimension), tensor(np.linspace(0.7, 1.9, dimension)), tensor([1.1] * dimension)]


@given(indices=index_sets())
@settings(deadline=None, derandomize=True, max_examples=15)
def test_compiled_products_and_reverse_sweep(indices):
    found = functions(*arguments(indices.shape[1], 4), indices)
    single = []
    for j, column in enumerate(indices.T):
        x, length_scale, input_scale = (a[..., j : j + 1] for a in arguments(indices.shape[1], 4))
        single.append(functions(x, length_scale, input_scale, np.arange(column.max() + 1)[:, None])[column])
    torch.testing.assert_close(found, torch.stack(single).prod(0), rtol=1e-13, atol=0.0)
    leaves = [a.requires_grad_() for a in arguments(indices.shape[1], 3)]
    assert torch.autograd.gradcheck(lambda *a: functions(*a, indices), leaves)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("points", [1, 127, 128, 3001])
def test_blocks_and_threads_do_not_change_a_bit(points, dtype):
    """Rows in several blocks on three threads, against the same rows one by one on one thread."""
    indices = np.array([[0, 0], [3, 1], [1, 2], [0, 4]])
    x, *scales = arguments(2, points)
    some = slice(None, None, 97)
    cotangent = torch.sin(torch.arange(4.0 * points)).reshape(4, points).to(dtype)

    def values(x, cotangent):
        x = x.to(dtype).requires_grad_()
        phi = functions(x, *scales, indices)
        return phi.detach(), torch.autograd.grad(phi, x, cotangent)[0]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        phi, by_x = values(x, cotangent)
        torch.set_num_threads(1)
        alone = [values(row[None], g[:, None]) for row, g in zip(x[some], cotangent.mT[some], strict=True)]
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(phi[:, some], torch.cat([p for p, _ in alone], 1), rtol=1e-14, atol=0.0)
    np.testing.assert_allclose(
        by_x[some], torch.cat([g for _, g in alone]), rtol=1e-12 if dtype == torch.float64 else 1e-4
    )


def test_without_a_directory_for_the_cache_the_loops_are_compiled_anew(monkeypatch):
    from certgp import loops

    def refusing(**options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, options)

    monkeypatch.setattr(loops, "njit", refusing)
    function, options = loops.compile_loop(check)
    assert function is check
    assert options["nogil"]
