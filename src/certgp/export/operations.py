"""How each operation of torch is written in ONNX, in float64. One small function each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.export.recorder import Graph, Operations, Recorded, graph_of, name_of, type_code, value_of

_ELEMENTWISE = {
    "exp": ("Exp", torch.exp),
    "log": ("Log", torch.log),
    "sqrt": ("Sqrt", torch.sqrt),
    "cos": ("Cos", torch.cos),
    "sin": ("Sin", torch.sin),
    "tanh": ("Tanh", torch.tanh),
    "relu": ("Relu", torch.relu),
    "sigmoid": ("Sigmoid", torch.sigmoid),
    "abs": ("Abs", torch.abs),
    "neg": ("Neg", torch.neg),
}
_PAIRS = {
    "add": ("Add", torch.add),
    "sub": ("Sub", torch.sub),
    "mul": ("Mul", torch.mul),
    "div": ("Div", torch.div),
    "truediv": ("Div", torch.div),
    "true_divide": ("Div", torch.div),
    "maximum": ("Max", torch.maximum),
    "minimum": ("Min", torch.minimum),
    "gt": ("Greater", torch.gt),
    "lt": ("Less", torch.lt),
    "or": ("Or", torch.logical_or),
    "logical_or": ("Or", torch.logical_or),
}


def _declare_elementwise(name: str, kind: str, function: Any) -> None:
    @Operations.add(name)
    def apply(x: Recorded, **options: Any) -> Recorded:
        return Recorded(x.graph, x.graph.node(kind, x.name), function(x.value))


def _declare_pair(name: str, kind: str, function: Any) -> None:
    @Operations.add(name)
    def apply(a: Any, b: Any) -> Recorded:
        return _pair(kind, function, a, b)


def _pair(kind: str, function: Any, a: Any, b: Any) -> Recorded:
    graph, like = graph_of(a, b), next(each.dtype for each in (a, b) if isinstance(each, Recorded))
    values = [each if isinstance(each, Tensor) else torch.as_tensor(each, dtype=like) for each in map(value_of, (a, b))]
    if kind in ("Mul", "Div"):
        a, b = _spread_number(a, values), _spread_number(b, values)
    return Recorded(graph, graph.node(kind, name_of(graph, a, like), name_of(graph, b, like)), function(*values))


def _spread_number(operand: Any, values: Sequence[Tensor]) -> Any:
    """A number beside a matrix as a whole row or column of it: onnxruntime draws single numbers into the product before
    them, and rounds them to float32 there.
    """
    shape = max((value.shape for value in values), key=lambda each: (len(each), each.numel()))
    if isinstance(operand, Recorded) or len(shape) != 2 or (isinstance(operand, Tensor) and operand.numel() > 1):
        return operand
    wide = (shape[0], 1) if shape[0] > 1 else (1, shape[1])
    return torch.as_tensor(operand, dtype=torch.float64).detach().reshape(1, 1).expand(wide).clone()


@Operations.add("matmul")
def _matmul(a: Any, b: Any) -> Recorded:
    """Vectors as matrices of one row or column: onnxruntime 1.31 multiplies transposed matrices by vectors wrongly
    where it fuses the two operations.
    """
    if b.ndim == 1:
        column = b[:, None]
        return _squeezed(_pair("MatMul", torch.matmul, a, column), 1)
    if a.ndim == 1:
        return _squeezed(_pair("MatMul", torch.matmul, a[None], b), 0)
    return _pair("MatMul", torch.matmul, a, b)


def _squeezed(x: Recorded, axis: int) -> Recorded:
    return Recorded(x.graph, x.graph.node("Squeeze", x.name, x.graph.integers(axis)), x.value.squeeze(axis))


for _name, _unary in _ELEMENTWISE.items():
    _declare_elementwise(_name, *_unary)
for _name, _binary in _PAIRS.items():
    _declare_pair(_name, *_binary)


@Operations.add("rsub")
def _from(a: Any, b: Any) -> Recorded:
    return _pair("Sub", torch.sub, b, a)


@Operations.add("rdiv", "rtruediv")
def _over(a: Any, b: Any) -> Recorded:
    return _pair("Div", torch.div, b, a)


@Operations.add("rmatmul")
def _times(a: Any, b: Any) -> Any:
    return _matmul(b, a)


@Operations.add("square")
def _square(x: Recorded) -> Recorded:
    return _pair("Mul", torch.mul, x, x)


@Operations.add("pow")
def _power(x: Recorded, exponent: float) -> Recorded:
    return _pair("Pow", torch.pow, x, float(exponent))


@Operations.add("log1p")
def _log1p(x: Recorded) -> Any:
    return (1.0 + x).log()


@Operations.add("expm1")
def _expm1(x: Recorded) -> Any:
    return x.exp() - 1.0


@Operations.add("fmod")
def _remainder(a: Recorded, b: Any) -> Recorded:
    graph = a.graph
    return Recorded(graph, graph.node("Mod", a.name, name_of(graph, b), fmod=1), torch.fmod(a.value, value_of(b)))


@Operations.add("clamp", "clip")
def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    bounded = x if min is None else _pair("Max", torch.maximum, x, min)
    return bounded if max is None else _pair("Min", torch.minimum, bounded, max)


@Operations.add("clamp_min")
def _clamp_min(x: Recorded, min: Any) -> Any:
    return _clamp(x, min=min)


@Operations.add("clamp_max")
def _clamp_max(x: Recorded, max: Any) -> Any:
    return _clamp(x, max=max)


# -------------------- types and shapes


@Operations.add("double")
def _double(x: Recorded) -> Any:
    return _to(x, torch.float64)


@Operations.add("to")
def _to(x: Recorded, dtype: torch.dtype) -> Recorded:
    if x.dtype == dtype:
        return x
    return Recorded(x.graph, x.graph.node("Cast", x.name, to=type_code(dtype)), x.value.to(dtype))


@Operations.add("detach", "contiguous", "clone")
def _same(x: Recorded) -> Recorded:
    return x


@Operations.add("reshape", "view")
def _reshape(x: Recorded, *shape: Any) -> Recorded:
    wanted = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    if wanted != tuple(x.shape):
        raise InvalidInputError(
            f"a reshape from {tuple(x.shape)} to {wanted} cannot be exported: rows may be of any number"
        )
    return x


@Operations.add("mT", "t", "get")
def _transpose(x: Recorded) -> Recorded:
    return Recorded(x.graph, x.graph.node("Transpose", x.name, perm=[1, 0]), x.value.mT)


@Operations.add("new_zeros")
def _new_zeros(x: Recorded, shape: Sequence[int], **options: Any) -> Tensor:
    return torch.zeros(shape, dtype=x.dtype)


@Operations.add("new_ones")
def _new_ones(x: Recorded, shape: Sequence[int], **options: Any) -> Tensor:
    return torch.ones(shape, dtype=x.dtype)


@Operations.add("zeros_like")
def _zeros_like(x: Recorded, **options: Any) -> Tensor:
    return torch.zeros_like(x.value)


@Operations.add("ones_like")
def _ones_like(x: Recorded, **options: Any) -> Tensor:
    return torch.ones_like(x.value)


@Operations.add("full_like")
def _full_like(x: Recorded, fill_value: float, **options: Any) -> Tensor:
    return torch.full_like(x.value, fill_value)


@Operations.add("getitem")
def _pick(x: Recorded, key: Any) -> Recorded:
    """Rows or columns by their numbers, the first row, or a new axis: what prediction code uses."""
    graph, everything = x.graph, slice(None)
    if key == slice(None, 1):
        key = [0]
    if isinstance(key, (int, list)):
        return Recorded(graph, graph.node("Gather", x.name, _indices(graph, key), axis=0), x.value[key])
    if isinstance(key, tuple) and len(key) == 2 and key[0] == everything:
        if key[1] is None:
            return Recorded(graph, graph.node("Unsqueeze", x.name, graph.integers(1)), x.value[:, None])
        if isinstance(key[1], slice):
            key = (everything, list(range(*key[1].indices(x.shape[1]))))
        if isinstance(key[1], (int, list)):
            return Recorded(graph, graph.node("Gather", x.name, _indices(graph, key[1]), axis=1), x.value[key])
    raise InvalidInputError(f"picking {key!r} of a tensor cannot be exported; pick columns by a list of numbers")


def _indices(graph: Graph, key: int | list[int]) -> str:
    if isinstance(key, list):
        return graph.integers(*key)
    return graph.constant(torch.tensor(key).numpy())


# -------------------- sums, joints, solves


@Operations.add("sum")
def _sum(x: Recorded, dim: int, keepdim: bool = False) -> Recorded:
    node = x.graph.node("ReduceSum", x.name, x.graph.integers(dim), keepdims=int(keepdim))
    return Recorded(x.graph, node, x.value.sum(dim, keepdim=keepdim))


@Operations.add("any")
def _any(x: Recorded, dim: int | None = None) -> Any:
    """Along an axis; of everything it is True: code that asks takes the way that is right for all rows."""
    if dim is None:
        return True
    numbers = x.graph.node("Cast", x.name, to=type_code(torch.float64))
    most = x.graph.node("ReduceMax", numbers, x.graph.integers(dim), keepdims=0)
    return Recorded(x.graph, x.graph.node("Greater", most, name_of(x.graph, 0.0)), x.value.any(dim))


@Operations.add("cat")
def _cat(parts: Sequence[Any], dim: int = 0) -> Recorded:
    """Constants of one row are repeated for all of them; those without columns are left out."""
    graph, rows = graph_of(*parts), next(each for each in parts if isinstance(each, Recorded))
    held = [each for each in parts if each.shape[1] > 0]
    names = [each.name if isinstance(each, Recorded) else _repeated(graph, rows, each) for each in held]
    return Recorded(graph, graph.node("Concat", *names, axis=dim), torch.cat([value_of(each) for each in held], dim))


@Operations.add("stack")
def _stack(parts: Sequence[Any]) -> Recorded:
    """(k, n) from k vectors over the rows."""
    graph, rows = graph_of(*parts), next(each for each in parts if isinstance(each, Recorded))
    names = [each.name if isinstance(each, Recorded) else _repeated(graph, rows, each) for each in parts]
    lines = [graph.node("Unsqueeze", name, graph.integers(0)) for name in names]
    return Recorded(graph, graph.node("Concat", *lines, axis=0), torch.stack([value_of(each) for each in parts]))


def _repeated(graph: Graph, rows: Recorded, constant: Tensor) -> str:
    """A constant with a first axis of one, for as many rows as ``rows`` has."""
    if constant.shape[0] != 1:
        raise InvalidInputError(f"a constant of shape {tuple(constant.shape)} cannot stand beside rows of any number")
    count = graph.node("Shape", rows.name, start=0, end=1)
    shape = graph.node("Concat", count, graph.integers(*constant.shape[1:]), axis=0) if constant.ndim > 1 else count
    return graph.node("Expand", name_of(graph, constant), shape)


@Operations.add("solve_triangular")
def _solve_triangular(L: Tensor, rhs: Recorded, *, upper: bool) -> Any:
    """By the inverse of a fixed matrix."""
    inverse = torch.linalg.solve_triangular(L.detach(), torch.eye(len(L), dtype=L.dtype), upper=upper)
    return _matmul(inverse, rhs)


@Operations.add("cdist")
def _cdist(a: Any, b: Any, **options: Any) -> Any:
    """Distances from differences, (n, m)."""
    graph = graph_of(a, b)
    left, right = (
        graph.node("Unsqueeze", name_of(graph, each), graph.integers(axis)) for each, axis in ((a, 1), (b, 0))
    )
    squares = graph.node("ReduceSumSquare", graph.node("Sub", left, right), graph.integers(2), keepdims=0)
    return Recorded(graph, graph.node("Sqrt", squares), torch.cdist(value_of(a), value_of(b)))


@Operations.add("linear")
def _linear(x: Recorded, weight: Tensor, bias: Tensor | None = None) -> Any:
    product = _matmul(x, weight.mT)
    return product if bias is None else product + bias


@Operations.add("mean")
def _mean(x: Recorded, dim: int, keepdim: bool = False) -> Recorded:
    node = x.graph.node("ReduceMean", x.name, x.graph.integers(dim), keepdims=int(keepdim))
    return Recorded(x.graph, node, x.value.mean(dim, keepdim=keepdim))
