"""Sums and products of kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import ClassVar, Self

import torch
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.kernels.base import BETWEEN, SIGNAL, Change, Kernel
from certgp.kernels.parameters import VARIANCE, Numbers
from certgp.kernels.registry import kernel_from_name
from certgp.linalg import UNIT_ROUNDOFF


class Sum(Kernel):
    """k = sum_i k_i; the signal variance is the sum of theirs. A sum inside a sum is flattened.

    Beside the shapes of its terms, the size of each relative to the first is learned.
    """

    name, composite = "sum", True

    def __init__(self, *parts: Kernel) -> None:
        self._set({}, (), None, _name_parts(self.name, parts))

    @property
    def constant_diagonal(self) -> bool:
        return all(part.constant_diagonal for part in self.parts.values())

    @property
    def signal_variance(self) -> Tensor:
        return torch.stack([part.signal_variance for part in self.parts.values()]).sum()

    def with_signal_variance(self, signal_variance: float | Tensor) -> Self:
        return self.scaled(signal_variance / self.signal_variance)

    def scaled(self, factor: Tensor, given: bool = True) -> Self:
        return self.rebuild({}, lambda _, part: part.scaled(factor, given))

    @property
    def size_given(self) -> bool:
        return any(part.size_given for part in self.parts.values())

    def relative(self) -> Self:
        """The first term at a signal variance of one: exactly, so that what is read from a file is what was written."""
        first, size = next((prefix, part.signal_variance) for prefix, part in self.parts.items())

        def one(prefix: str, part: Kernel) -> Kernel:
            if prefix != first or SIGNAL not in part.parameters:
                return part
            return part.rebuild({SIGNAL: torch.ones_like(size)}, lambda _, each: each, given=False)  # not (1 / s) s

        return self.scaled(1.0 / size, given=False).rebuild({}, one, given=False)

    def learned_values(self) -> dict[str, Tensor]:
        others = list(self.relative().parts.items())[1:]
        sizes = {
            prefix + BETWEEN + SIGNAL: part.signal_variance for prefix, part in others if SIGNAL in part.parameters
        }
        return super().learned_values() | sizes

    def _weights(self) -> list[tuple[Tensor, Kernel]]:
        return [(part.signal_variance / self.signal_variance, part) for part in self.parts.values()]

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return sum((weight.to(X.dtype) * part.unit(X, Z) for weight, part in self._weights()), X.new_zeros(()))

    def evaluate_diagonal(self, X: Tensor) -> Tensor:
        return sum((weight * part.unit_diagonal(X) for weight, part in self._weights()), X.new_zeros(()))

    def rounding(self, Z: Tensor) -> float:
        """Terms of size at most their weights, which add up to one; each weight and product errs by a few u."""
        terms = sum(float(weight.detach()) * part.rounding(Z) for weight, part in self._weights())
        return terms + (2 * len(self.parts) + 4) * UNIT_ROUNDOFF

    def decaying_columns(self, dimension: int) -> set[int]:
        return set.intersection(*(part.decaying_columns(dimension) for part in self.parts.values()))


class Product(Kernel):
    """k = sf2 prod_i u_i with the unit kernels u_i of its factors. A product inside a product is flattened."""

    name, composite = "product", True
    parameters: ClassVar = {SIGNAL: VARIANCE}

    def __init__(self, *parts: Kernel, signal_variance: Numbers | None = None) -> None:
        factors = {name: _normalise(part) for name, part in _name_parts(self.name, parts).items()}
        size = math.prod((part.signal_variance for part in parts), start=torch.ones((), dtype=torch.float64))
        given = signal_variance is not None or any(part.size_given for part in parts)
        values = {SIGNAL: size if signal_variance is None else signal_variance}
        self._set(values, values if given else (), None, factors)

    @property
    def constant_diagonal(self) -> bool:
        return all(part.constant_diagonal for part in self.parts.values())

    def rebuild(self, values: Mapping[str, Tensor], change: Change, given: bool = True) -> Self:
        """What a change makes of the factors' signal variances becomes part of the overall one."""
        made = super().rebuild(values, change, given)
        size = math.prod((part.signal_variance for part in made.parts.values()), start=made.signal_variance)
        return super(Product, made).rebuild({SIGNAL: size}, lambda _, part: _normalise(part), given=False)

    def with_learned(self, named: Mapping[str, Tensor]) -> Self:
        """The sizes that learned shapes bring with them do not count."""
        return super().with_learned(named).with_signal_variance(named.get(SIGNAL, self.signal_variance))

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return math.prod((part.unit(X, Z) for part in self.parts.values()), start=X.new_ones(()))

    def evaluate_diagonal(self, X: Tensor) -> Tensor:
        return math.prod((part.unit_diagonal(X) for part in self.parts.values()), start=X.new_ones(()))

    def rounding(self, Z: Tensor) -> float:
        """Factors of size at most one: prod (1 + e_i) - 1, and one rounding per product."""
        factors = math.expm1(sum(math.log1p(part.rounding(Z)) for part in self.parts.values()))
        return factors + 2 * len(self.parts) * UNIT_ROUNDOFF

    def decaying_columns(self, dimension: int) -> set[int]:
        return set.union(*(part.decaying_columns(dimension) for part in self.parts.values()))


def named_kernel(name: str) -> Kernel:
    """The kernel of a name, or the sum of several as in "matern52 + matern12", with all its values to be learned."""
    parts = [kernel_from_name(part.strip())() for part in name.split("+")]
    return parts[0] if len(parts) == 1 else Sum(*parts)


def _name_parts(owner: str, parts: Sequence[Kernel]) -> dict[str, Kernel]:
    """The parts, those of the owner's own kind flattened, by their names; the second ``gaussian`` is ``gaussian_2``."""
    if not all(isinstance(part, Kernel) for part in parts) or not parts:
        raise InvalidInputError(f"a {owner} of kernels takes one kernel or more, found {parts!r}")
    named: dict[str, Kernel] = {}
    for part in parts:
        for inner in part.parts.values() if part.name == owner else [part]:
            free = (f"{inner.name}_{number}" for number in count(2) if f"{inner.name}_{number}" not in named)
            named[next(free) if inner.name in named else inner.name] = inner
    return named


def _normalise(part: Kernel) -> Kernel:
    """At a signal variance of one; what was not given stays so."""
    return part if float(part.signal_variance.detach()) == 1.0 else part.scaled(1.0 / part.signal_variance, given=False)
