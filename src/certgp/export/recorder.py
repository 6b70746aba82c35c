"""A tensor that records what is done to it as nodes of an ONNX graph.

The model's own prediction code runs once with a ``Recorded`` in place of its rows: torch hands every function that is
called with one to ``__torch_function__``, which adds a node and returns the next ``Recorded``. So there is no second
version of the mathematics to keep equal. Beside the name of its node each one carries its value at a single example
row: shapes and types are read from that, and what the code makes from the number of rows has a first axis of one, which
broadcasts over any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partialmethod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor

from certgp.errors import InvalidInputError

_TYPES = {torch.float64: TensorProto.DOUBLE, torch.float32: TensorProto.FLOAT, torch.bool: TensorProto.BOOL}
_PLAIN = ("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout")


class Graph:
    """Nodes and constants, in the order in which they were recorded."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """The name of a constant; equal ones are kept once."""
        value = np.array(value, order="C")  # also of numbers, which ascontiguousarray makes lists
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._known:
            self._known[key] = f"c{len(self._known)}"
            self.constants.append(numpy_helper.from_array(value, self._known[key]))
        return self._known[key]

    def integers(self, *values: int) -> str:
        """A constant list of whole numbers: axes, shapes, indices."""
        return self.constant(np.array(values, dtype=np.int64))


class Recorded:
    """A node of the graph that behaves as a tensor."""

    def __init__(self, graph: Graph, name: str, value: Tensor) -> None:
        self.graph, self.name, self.value = graph, name, value

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """What torch calls instead of ``func``."""
        return record(func.__name__, args, dict(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN:
            return getattr(self.value, name)
        if name == "mT":
            return record("mT", (self,), {})
        return lambda *args, **kwargs: record(name, (self, *args), kwargs)

    def __len__(self) -> int:
        return len(self.value)

    def _operate(self, *args: Any, name: str) -> Any:
        return record(name, (self, *args), {})

    __add__ = partialmethod(_operate, name="add")
    __radd__ = partialmethod(_operate, name="add")
    __sub__ = partialmethod(_operate, name="sub")
    __rsub__ = partialmethod(_operate, name="rsub")
    __mul__ = partialmethod(_operate, name="mul")
    __rmul__ = partialmethod(_operate, name="mul")
    __truediv__ = partialmethod(_operate, name="div")
    __rtruediv__ = partialmethod(_operate, name="rdiv")
    __matmul__ = partialmethod(_operate, name="matmul")
    __rmatmul__ = partialmethod(_operate, name="rmatmul")
    __neg__ = partialmethod(_operate, name="neg")
    __pow__ = partialmethod(_operate, name="pow")
    __gt__ = partialmethod(_operate, name="gt")
    __lt__ = partialmethod(_operate, name="lt")
    __or__ = partialmethod(_operate, name="or")
    __getitem__ = partialmethod(_operate, name="getitem")


def record(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add an operation to the graph of its operands; one that the graph cannot hold is refused by name."""
    plain = name.strip("_").removeprefix("linalg_")
    found = Operations.get(plain)
    if found is None:
        raise InvalidInputError(
            f"torch.{plain} cannot be written as an ONNX graph by certgp; a network or kernel of your own may use "
            f"{', '.join(sorted(Operations.names()))}"
        )
    return found(*args, **kwargs)


class Operations:
    """What can be recorded, by torch's names."""

    _known: ClassVar[dict[str, Callable[..., Any]]] = {}

    @classmethod
    def get(cls, name: str) -> Callable[..., Any] | None:
        """The function that records this operation."""
        return cls._known.get(name)

    @classmethod
    def names(cls) -> Iterable[str]:
        """Of all operations."""
        return cls._known

    @classmethod
    def add(cls, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare what records an operation of these names."""

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            cls._known.update(dict.fromkeys(names, function))
            return function

        return keep


def graph_of(*operands: Any) -> Graph:
    """That of the first recorded operand."""
    return next(each.graph for each in operands if isinstance(each, Recorded))


def name_of(graph: Graph, operand: Any, like: torch.dtype = torch.float64) -> str:
    """The name of an operand; numbers and tensors become constants."""
    if isinstance(operand, Recorded):
        return operand.name
    value = operand.detach() if isinstance(operand, Tensor) else torch.as_tensor(operand, dtype=like)
    return graph.constant(value.numpy())


def value_of(operand: Any) -> Any:
    """At the example row."""
    return operand.value if isinstance(operand, Recorded) else operand


def type_code(dtype: torch.dtype) -> int:
    """That of ONNX."""
    return int(_TYPES[dtype])
