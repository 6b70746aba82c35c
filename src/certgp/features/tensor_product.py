"""Products of one-dimensional functions over a set of multi-indices, sharing common factors."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

import torch
from torch import Tensor

from certgp.features.index_sets import IndexSet

_SPLITS_TRIED_UP_TO = 8  # positions
_LOOP_UP_TO = 2  # rows that are cheaper to accumulate one by one than through a temporary array


@dataclass(frozen=True)
class Block:
    """Neighbouring rows of the left factor times neighbouring rows of the right one: an outer product, row by row."""

    left: slice
    right: slice
    rows: slice  # of the product

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of left and of right rows."""
        return self.left.stop - self.left.start, self.right.stop - self.right.start


@dataclass(frozen=True, eq=False)
class Leaf:
    """The function table of one dimension."""

    dimension: int
    count: int


@dataclass(frozen=True, eq=False)
class Product:
    """Rows of two factors, which hold disjoint groups of dimensions, multiplied block by block."""

    left: Leaf | Product
    right: Leaf | Product
    left_rows: Tensor  # rows of the left factor, in the order in which the blocks use them
    right_rows: Tensor
    blocks: tuple[Block, ...]
    size: int


_Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ProductTree:
    """How to build prod_j H_j[k_j] for all multi-indices of a set from products over halves of the dimensions.

    There are few distinct halves of multi-indices, so nearly all work is in the last product. Its rows are laid out
    so that each left half stands next to its right halves, and the right halves by how often they occur: for sets
    like "all of small cost" the partners of a left half are then the first few rows of the right factor, and the
    product is made of slices; no row of the large array is gathered. The price is an order of the rows that is the
    tree's own: multi-index i of the set is row ``position[i]``.
    """

    root: Leaf | Product
    position: Tensor  # (r,)
    counts: tuple[int, ...]  # functions needed per dimension

    @staticmethod
    def of(indices: IndexSet) -> ProductTree:
        """Tree of an index set (r, d)."""
        members = [tuple(row) for row in indices.tolist()]
        root, rows = _build(tuple(range(indices.shape[1])), members)
        row_of = {member: row for row, member in enumerate(rows)}
        position = torch.tensor([row_of[member] for member in members])
        return ProductTree(root, position, tuple(int(top) + 1 for top in indices.max(axis=0)))


def _build(dimensions: tuple[int, ...], members: list[_Index]) -> tuple[Leaf | Product, list[_Index]]:
    """A tree for ``members`` (degrees of these dimensions), and the multi-indices in the order of its rows."""
    if len(dimensions) == 1:
        count = 1 + max(degree for (degree,) in members)
        return Leaf(dimensions[0], count), [(degree,) for degree in range(count)]
    here, there = _halves(members)
    partners: defaultdict[_Index, list[_Index]] = defaultdict(list)
    for member in members:
        partners[_pick(member, here)].append(_pick(member, there))
    often = Counter(right for rights in partners.values() for right in rights)
    rights = sorted(often, key=lambda right: (-often[right], right))
    rank = {right: i for i, right in enumerate(rights)}
    ranks = {left: sorted(rank[right] for right in found) for left, found in partners.items()}
    lefts = sorted(ranks, key=lambda left: (ranks[left], left))

    rows: list[_Index] = []
    blocks: list[Block] = []
    first = 0
    for shared, group in groupby(lefts, key=lambda left: ranks[left]):
        family = list(group)
        for low, high in _runs(shared):
            start = len(rows)
            rows += [_merge(here, left, there, rights[i]) for left in family for i in range(low, high)]
            blocks.append(Block(slice(first, first + len(family)), slice(low, high), slice(start, len(rows))))
        first += len(family)
    left, left_members = _build(tuple(dimensions[i] for i in here), lefts)
    right, right_members = _build(tuple(dimensions[i] for i in there), rights)
    node = Product(
        left, right, _positions(lefts, left_members), _positions(rights, right_members), tuple(blocks), len(rows)
    )
    return node, rows


def _halves(members: list[_Index]) -> tuple[_Index, _Index]:
    """Two groups of positions with few distinct parts; the one with fewer of them comes first.

    Up to eight positions all even splits are tried. Of more, positions with many degrees are dealt out in turn: there
    are too many splits to try, and most of the positions hold few degrees anyway.
    """
    everything = range(len(members[0]))
    if len(everything) <= _SPLITS_TRIED_UP_TO:
        splits = list(combinations(everything, len(everything) // 2))
    else:
        by_degrees = sorted(everything, key=lambda i: -len({member[i] for member in members}))
        splits = [tuple(sorted(by_degrees[::2]))]

    def parts(here: _Index) -> list[tuple[int, _Index]]:
        there = tuple(i for i in everything if i not in here)
        return sorted((len({_pick(member, side) for member in members}), side) for side in (here, there))

    (_, fewer), (_, more) = min(map(parts, splits), key=lambda sides: sides[0][0] + sides[1][0])
    return fewer, more


def _pick(member: _Index, positions: _Index) -> _Index:
    return tuple(member[i] for i in positions)


def _merge(here: _Index, left: _Index, there: _Index, right: _Index) -> _Index:
    degree = dict(zip((*here, *there), (*left, *right), strict=True))
    return tuple(degree[i] for i in range(len(degree)))


def _positions(wanted: list[_Index], rows: list[_Index]) -> Tensor:
    row_of = {member: row for row, member in enumerate(rows)}
    return torch.tensor([row_of[member] for member in wanted])


def _runs(ranks: list[int]) -> list[tuple[int, int]]:
    """Maximal ranges [low, high) of consecutive numbers in a sorted list."""
    cuts = [i for i in range(1, len(ranks)) if ranks[i] != ranks[i - 1] + 1]
    ends = zip([0, *cuts], [*cuts, len(ranks)], strict=True)
    return [(ranks[start], ranks[stop - 1] + 1) for start, stop in ends]


def tensor_product(functions: list[Tensor], tree: ProductTree) -> Tensor:
    """prod_j functions[j][k_j] for every multi-index k, in the tree's order: list of (counts[j], n) -> (r, n)."""
    product: Tensor = _TensorProduct.apply(tree.root, *functions)  # type: ignore[no-untyped-call]
    return product


class _TensorProduct(torch.autograd.Function):
    """One multiplication per tree row forwards; the reverse sweep is written out."""

    @staticmethod
    def forward(ctx: Any, root: Leaf | Product, *functions: Tensor) -> Tensor:
        factors: list[Tensor] = []
        product = _multiply(root, functions, factors)
        ctx.root, ctx.dims = root, len(functions)
        ctx.save_for_backward(*functions, *factors)
        return product

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        functions, factors = ctx.saved_tensors[: ctx.dims], ctx.saved_tensors[ctx.dims :]
        grads = [torch.zeros_like(table) for table in functions]
        _pull_back(ctx.root, grad_outputs[0], None, list(factors), grads)
        return (None, *grads)


def _multiply(node: Leaf | Product, functions: tuple[Tensor, ...], factors: list[Tensor]) -> Tensor:
    """Rows of a node; the arranged factors of all products below it are appended, children first."""
    if isinstance(node, Leaf):
        return functions[node.dimension]
    left = _multiply(node.left, functions, factors).index_select(0, node.left_rows)
    right = _multiply(node.right, functions, factors).index_select(0, node.right_rows)
    factors += [left, right]
    n = left.shape[1]
    rows = left.new_empty((node.size, n))
    for block in node.blocks:
        torch.mul(left[block.left, None], right[block.right], out=rows[block.rows].view(*block.shape, n))
    return rows


def _pull_back(
    node: Leaf | Product, G: Tensor, rows: Tensor | None, factors: list[Tensor], grads: list[Tensor]
) -> None:
    """Add to ``grads`` what the cotangents G of ``rows`` of a node (None: all, in order) bring; takes the node's
    factors from the end of the list.
    """
    if isinstance(node, Leaf):
        for row, each in zip(range(node.count) if rows is None else rows.tolist(), G, strict=True):
            grads[node.dimension][row] += each
        return
    right, left = factors.pop(), factors.pop()
    by_left, by_right = torch.zeros_like(left), torch.zeros_like(right)
    arranged = G if rows is None else G.index_select(0, torch.argsort(rows))  # every row is used exactly once
    for block in node.blocks:
        cotangent = arranged[block.rows].view(*block.shape, G.shape[1])
        _accumulate(by_left[block.left], cotangent.transpose(0, 1), right[block.right])
        _accumulate(by_right[block.right], cotangent, left[block.left])
    # the right factor was built last, so its own factors are at the end of the list
    _pull_back(node.right, by_right, node.right_rows, factors, grads)
    _pull_back(node.left, by_left, node.left_rows, factors, grads)


def _accumulate(target: Tensor, cotangent: Tensor, factor: Tensor) -> None:
    """target (k, n) += sum_i cotangent[i] (k, n) * factor[i] (n,)."""
    if len(factor) <= _LOOP_UP_TO:
        for each, row in zip(cotangent, factor, strict=True):
            target.addcmul_(each, row)
    else:
        target.add_((cotangent * factor[:, None]).sum(0))
