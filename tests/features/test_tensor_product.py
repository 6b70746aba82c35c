"""The product tree multiplies the right functions, whatever the index set."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.features.tensor_product import ProductTree, tensor_product
from helpers import tensor


@st.composite
def index_sets(draw):
    """Any set of multi-indices: with holes, unsorted."""
    dimension = draw(st.integers(1, 5))
    row = st.tuples(*[st.integers(0, 4)] * dimension)
    return np.array(draw(st.lists(row, min_size=1, max_size=12, unique=True)), dtype=np.int64)


def tables(tree: ProductTree, points: int) -> list[torch.Tensor]:
    rng = np.random.default_rng(0)
    return [tensor(rng.standard_normal((count, points))) for count in tree.counts]


@given(indices=index_sets())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_products_are_those_of_the_index_set(indices):
    tree = ProductTree.of(indices)
    functions = tables(tree, 3)
    gathered = [functions[j][torch.from_numpy(indices[:, j].copy())] for j in range(indices.shape[1])]
    product = tensor_product(functions, tree)[tree.position]
    torch.testing.assert_close(product, torch.stack(gathered).prod(0), rtol=1e-14, atol=0.0)
    assert tree.counts == tuple(indices.max(0) + 1)


@given(indices=index_sets())
@settings(deadline=None, derandomize=True, max_examples=15)
def test_reverse_sweep(indices):
    tree = ProductTree.of(indices)
    functions = [f.requires_grad_() for f in tables(tree, 2)]
    assert torch.autograd.gradcheck(lambda *f: tensor_product(list(f), tree), functions)


def test_many_dimensions_are_split_at_once():
    """One degree in each of sixty dimensions: trying every split would never end."""
    indices = np.eye(60, dtype=np.int64)
    tree = ProductTree.of(indices)
    functions = tables(tree, 2)
    gathered = [functions[j][torch.from_numpy(indices[:, j].copy())] for j in range(60)]
    torch.testing.assert_close(tensor_product(functions, tree)[tree.position], torch.stack(gathered).prod(0))
