"""Products of one-dimensional functions over a set of multi-indices, sharing common prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certgp.features.index_sets import IndexSet


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """How to build prod_j H_j[k_j] for all multi-indices of a set with one product per distinct prefix.

    Dimensions are visited by increasing top degree, which keeps the early levels small. Node i of level l is its parent
    at the level before times a function of dimension ``order[l]``; the last level is the index set, in its own order.
    """

    order: tuple[int, ...]
    degree: tuple[Tensor, ...]  # per level: the degree of each node
    parent: tuple[Tensor, ...]  # per level from the second on: the parent of each node
    counts: tuple[int, ...]  # functions needed per dimension, in the original order of dimensions

    @staticmethod
    def of(indices: IndexSet) -> PrefixTree:
        """Tree of an index set (r, d)."""
        tops = indices.max(axis=0)
        order = np.argsort(tops, kind="stable")
        nodes = indices[:, order]
        degree: list[Tensor] = []
        parent: list[Tensor] = []
        for level in range(len(order) - 1, 0, -1):
            prefixes, inverse = np.unique(nodes[:, :-1], axis=0, return_inverse=True)
            degree.insert(0, torch.as_tensor(nodes[:, level].copy()))
            parent.insert(0, torch.as_tensor(inverse.reshape(-1)))
            nodes = prefixes
        degree.insert(0, torch.as_tensor(nodes[:, 0].copy()))
        return PrefixTree(tuple(map(int, order)), tuple(degree), tuple(parent), tuple(int(t) + 1 for t in tops))


def tensor_product(functions: list[Tensor], tree: PrefixTree) -> Tensor:
    """prod_j functions[j][k_j] for every multi-index k: list of (counts[j], n) -> (r, n)."""
    product: Tensor = _TensorProduct.apply(tree, *functions)  # type: ignore[no-untyped-call]
    return product


class _TensorProduct(torch.autograd.Function):
    """One multiplication per tree node forwards; the reverse sweep is written out, which halves the memory of taped
    gathers.
    """

    @staticmethod
    def forward(ctx: Any, tree: PrefixTree, *functions: Tensor) -> Tensor:
        levels = [functions[tree.order[0]].index_select(0, tree.degree[0])]
        for level in range(1, len(tree.order)):
            nodes = levels[-1].index_select(0, tree.parent[level - 1])
            nodes.mul_(_pick(functions[tree.order[level]], tree.degree[level]))
            levels.append(nodes)
        ctx.tree, ctx.dims = tree, len(functions)
        ctx.save_for_backward(*functions, *levels[:-1])
        return levels[-1]

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        tree: PrefixTree = ctx.tree
        functions, levels = ctx.saved_tensors[: ctx.dims], ctx.saved_tensors[ctx.dims :]
        (G,) = grad_outputs
        grads: list[Tensor | None] = [None] * ctx.dims
        for level in range(len(tree.order) - 1, 0, -1):
            j, degree, parent = tree.order[level], tree.degree[level], tree.parent[level - 1]
            above = levels[level - 1]
            grads[j] = _scatter(functions[j], degree, above.index_select(0, parent).mul_(G))
            G = torch.zeros_like(above).index_add_(0, parent, _pick(functions[j], degree) * G)
        grads[tree.order[0]] = _scatter(functions[tree.order[0]], tree.degree[0], G)
        return (None, *grads)


def _pick(function: Tensor, degree: Tensor) -> Tensor:
    """Rows of a function table by degree; a table of one row broadcasts instead of being copied."""
    return function if function.shape[0] == 1 else function.index_select(0, degree)


def _scatter(function: Tensor, degree: Tensor, cotangent: Tensor) -> Tensor:
    """Sum the cotangents of all nodes that used a row of the function table."""
    return torch.zeros_like(function).index_add_(0, degree, cotangent)
