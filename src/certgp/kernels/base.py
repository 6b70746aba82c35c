"""What a kernel offers; one subclass per family, each final."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.kernels.parameters import Numbers, Parameter, Units
from certgp.kernels.registry import register
from certgp.kernels.spectral import log_density, radius_scale

if TYPE_CHECKING:
    from certgp.kernels.mercer import MercerExpansion

SIGNAL = "signal_variance"
Change = Callable[[str, "Kernel"], "Kernel"]  # what becomes of a part
BETWEEN = "__"  # a part and its parameter, in the names of a composite kernel's parameters


class Kernel(ABC):
    r"""k(x, x') = sf2 u(x, x'): a signal variance sf2 and a unit kernel u with named parameters.

    A kernel is an immutable value. Its numbers may be floats, arrays or tensors that carry gradients; a single number
    for a parameter of all dimensions is shared by them. ``columns`` restricts it to some columns of the inputs. Where a
    model is fitted, a parameter that was not given starts at its default in standardised units.

    A family declares its ``name`` and its ``parameters``, writes ``evaluate``, and says whether its diagonal is
    constant. It is found by its name from the moment it is defined.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, Parameter]] = {}  # its own, in the order in which the constructor takes them
    decays: ClassVar[bool] = False  # does k(x, x') vanish as x moves away from x', along any of its columns?
    spectral_degrees: ClassVar[float | None] = None  # of the t law of its frequencies (``kernels.spectral``)
    composite: ClassVar[bool] = False  # is it made of other kernels?
    columns: tuple[int, ...] | None  # None for all of them
    parts: Mapping[str, Kernel]  # of a composite kernel
    given: frozenset[str]  # own parameters that do not have their defaults
    _values: Mapping[str, Tensor]

    def __init__(self, *values: Numbers | None, columns: Sequence[int] | None = None, **named: Numbers | None) -> None:
        """Parameters in their order or by name; None for one that is not given."""
        everything = dict(zip(self.parameters, values, strict=False)) | named
        if len(values) > len(self.parameters) or set(everything) - set(self.parameters):
            found = ", ".join([*map(repr, values[len(self.parameters) :]), *sorted(set(named) - set(self.parameters))])
            raise InvalidInputError(
                f"{type(self).__name__} takes {', '.join(self.parameters)} and columns; not {found}"
            )
        given = {name: value for name, value in everything.items() if value is not None}
        start = {name: each.default for name, each in self.parameters.items()} | given
        own = None if columns is None else _check_columns(columns)
        self._set(start, given, own, {})

    def _set(
        self,
        values: Mapping[str, Numbers],
        given: Iterable[str],
        columns: tuple[int, ...] | None,
        parts: Mapping[str, Kernel],
    ) -> None:
        checked = {name: self.parameters[name].check(name, value) for name, value in values.items()}
        self.__dict__.update(checked, _values=checked, given=frozenset(given), columns=columns, parts=parts)

    def __init_subclass__(cls) -> None:
        register(cls)
        if not cls.composite:
            own = [Argument(name, Argument.POSITIONAL_OR_KEYWORD, default=None) for name in cls.parameters]
            cls.__signature__ = Signature([*own, Argument("columns", Argument.KEYWORD_ONLY, default=None)])  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"kernels are immutable; use replace({name}=...)")

    def __repr__(self) -> str:
        own = [f"{name}={_format_value(value)}" for name, value in self._values.items()]
        columns = [] if self.columns is None else [f"columns={list(self.columns)}"]
        return f"{type(self).__name__}({', '.join([*map(repr, self.parts.values()), *own, *columns])})"

    # -------------------- what a family says

    @property
    @abstractmethod
    def constant_diagonal(self) -> bool:
        """Is k(x, x) = signal_variance for all x?"""

    @abstractmethod
    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        """k(X, Z) / sf2, (n, m), in the type of X, where X (n, d) and Z (m, d) hold the kernel's own columns."""

    def evaluate_diagonal(self, X: Tensor) -> Tensor:
        """k(x_i, x_i) / sf2 (n,) for rows X (n, d) of the kernel's own columns; for families whose diagonal varies."""
        raise TypeError(f"{type(self).__name__} says that its diagonal varies, so it must define evaluate_diagonal")

    def rounding(self, Z: Tensor) -> float:
        """A bound on how far ``unit(X, Z)`` in float64 may be from k(X, Z) / sf2, for these Z (m, D) and any X."""
        raise NotCertifiableError(
            f"the {self.name} kernel has no bound on the rounding of its values, so nothing can be certified"
        )

    # -------------------- values

    def __call__(self, X: Tensor, Z: Tensor) -> Tensor:
        """Kernel matrix k(X, Z), (n, D) x (m, D) -> (n, m)."""
        return self.signal_variance * self.unit(X.double(), Z.double())

    def unit(self, X: Tensor, Z: Tensor) -> Tensor:
        """k(X, Z) / sf2, (n, D) x (m, D) -> (n, m), in the type of X."""
        return self.evaluate(self.pick_columns(X), self.pick_columns(Z))

    def diagonal(self, X: Tensor) -> Tensor:
        """k(x_i, x_i) for every row, (n,)."""
        return self.signal_variance * self.unit_diagonal(X)

    def unit_diagonal(self, X: Tensor) -> Tensor:
        """k(x_i, x_i) / sf2 for every row, (n,)."""
        if self.constant_diagonal:
            return torch.ones(X.shape[0], dtype=torch.float64)
        return self.evaluate_diagonal(self.pick_columns(X.double()))

    def pick_columns(self, X: Tensor) -> Tensor:
        """The kernel's own columns of X (n, D)."""
        return X if self.columns is None else X[:, list(self.columns)]

    # -------------------- parameters

    @property
    def signal_variance(self) -> Tensor:
        """sf2 (), the overall factor."""
        return self._values[SIGNAL]

    @property
    def values(self) -> dict[str, Tensor]:
        """All parameters by name; those of a part as ``part__name``."""
        return dict(self._values) | _join_names({prefix: part.values for prefix, part in self.parts.items()})

    def parameter(self, name: str) -> Parameter:
        """What a parameter of this name is."""
        prefix, _, rest = name.partition(BETWEEN)
        return self.parts[prefix].parameter(rest) if prefix in self.parts else self.parameters[name]

    def replace(self, **named: Numbers) -> Self:
        """The same kernel with other values of some parameters."""
        unknown = sorted(set(named) - set(self.values))
        if unknown:
            raise InvalidInputError(
                f"the {self.name} kernel has no parameter {', '.join(unknown)}; it has {', '.join(self.values)}"
            )
        own = {name: self.parameters[name].check(name, named[name]) for name in self.parameters if name in named}
        return self.rebuild(own, lambda prefix, part: part.replace(**_pick_part(named, prefix)))

    def with_signal_variance(self, signal_variance: float | Tensor) -> Self:
        """The same kernel with another signal variance."""
        return self.replace(signal_variance=signal_variance)

    def scaled(self, factor: Tensor, given: bool = True) -> Self:
        """factor k; whether its size counts as given is as told, or stays as it was."""
        return self.rebuild({SIGNAL: factor * self.signal_variance}, lambda _, part: part, given)

    @property
    def size_given(self) -> bool:
        """Was the signal variance given?"""
        return SIGNAL in self.given

    @property
    def lengths_given(self) -> bool:
        """Was any length given, so that a fit should start from it?"""
        own = any(self.parameters[name].is_length for name in self.given)
        return own or any(part.lengths_given for part in self.parts.values())

    def learned_values(self) -> dict[str, Tensor]:
        """The parameters that are learned, by name: the shape of the unit kernel."""
        kernel = self.relative()
        own = {name: kernel.values[name] for name, each in self.parameters.items() if each.log_bounds}
        own.pop(SIGNAL, None)
        return own | _join_names({prefix: part.learned_values() for prefix, part in kernel.parts.items()})

    def with_learned(self, named: Mapping[str, Tensor]) -> Self:
        """The kernel with these ``learned_values``, at some signal variance."""
        own = {name: self.parameters[name].check(name, named[name]) for name in self.parameters if name in named}
        return self.relative().rebuild(own, lambda prefix, part: part.with_learned(_pick_part(named, prefix)))

    def relative(self) -> Self:
        """The kernel at the signal variance to which the learned sizes of its parts refer."""
        return self

    def detached(self) -> Self:
        """The same kernel without gradients."""
        own = {name: value.detach() for name, value in self._values.items()}
        return self.rebuild(own, lambda _, part: part.detached(), given=False)

    def expanded(self, dimension: int) -> Self:
        """The kernel for inputs of ``dimension`` columns, with one number per dimension where it may have one; refuses
        parameters and columns that do not fit.
        """
        if self.columns is not None and max(self.columns) >= dimension:
            raise InvalidInputError(
                f"columns of the {self.name} kernel names column {max(self.columns)}, but the inputs have {dimension} "
                f"column(s); number them from 0 to {dimension - 1}"
            )
        d = dimension if self.columns is None else len(self.columns)
        wide = {name: value for name, value in self._values.items() if self.parameters[name].per_dimension}
        for name, value in wide.items():
            if value.numel() not in (1, d):
                raise InvalidInputError(f"{name} has {value.numel()} numbers but the kernel works in {d} dimension(s)")
        own = {name: value.expand(d) for name, value in wide.items()}
        return self.rebuild(own, lambda _, part: part.expanded(dimension), given=False)

    def rebuild(self, values: Mapping[str, Tensor], change: Change, given: bool = True) -> Self:
        """A copy with other values, which count as given or leave that as it was, and changed parts."""
        made = copy.copy(self)
        everything = {**self._values, **values}
        parts = {prefix: change(prefix, part) for prefix, part in self.parts.items()}
        now_given = self.given | values.keys() if given else self.given
        made.__dict__.update(everything, _values=everything, given=now_given, parts=parts)
        return made

    # -------------------- units and files

    def to_user(self, mean: Units, scale: Units, y_scale: float) -> Self:
        """k_user(x, z) = y_scale^2 k((x - mean) / scale, (z - mean) / scale), for mean and scale per column (D,)."""
        wide = self.expanded(len(scale))
        m, s, inner = self._own(mean), self._own(scale), self._unit_of_parts(y_scale)
        own = {name: each.to_user(wide.values[name], m, s, y_scale) for name, each in self.parameters.items()}
        return self.rebuild(own, lambda _, part: part.to_user(mean, scale, inner))

    def to_standardised(self, mean: Units, scale: Units, y_scale: float, default_length: float | None = None) -> Self:
        """The inverse of ``to_user``. A parameter that was not given has its default in standardised units; a length
        ``default_length`` where that is told.
        """
        wide = self.expanded(len(scale))
        m, s, inner = self._own(mean), self._own(scale), self._unit_of_parts(y_scale)
        own = {name: each.to_standardised(wide.values[name], m, s, y_scale) for name, each in self.parameters.items()}
        for name in self.parameters.keys() - self.given:
            own[name] = wide.values[name]
            if default_length is not None and self.parameters[name].is_length:
                own[name] = torch.full_like(own[name], default_length)
        return self.rebuild(own, lambda _, part: part.to_standardised(mean, scale, inner, default_length))

    def _own(self, per_column: Units) -> Tensor:
        """The numbers (D,) of the kernel's own columns."""
        return self.pick_columns(torch.as_tensor(per_column, dtype=torch.float64)[None])[0]

    def _unit_of_parts(self, y_scale: float) -> float:
        """The unit of y that parts carry: none where the signal variance is a factor of its own."""
        return 1.0 if SIGNAL in self.parameters else y_scale

    def describe(self) -> dict[str, Any]:
        """Name, parameters, columns and parts as JSON-able values, for ``kernel_from_description``."""
        found: dict[str, Any] = {"kernel": self.name}
        found |= {name: value.detach().tolist() for name, value in self._values.items()}
        if self.columns is not None:
            found["columns"] = list(self.columns)
        if self.parts:
            found["parts"] = [part.describe() for part in self.parts.values()]
        if self.parameters.keys() - self.given:
            found["not_given"] = sorted(self.parameters.keys() - self.given)
        return found

    def without_given(self, names: Iterable[str]) -> Self:
        """The same kernel, in which these parameters count as not given."""
        made = copy.copy(self)
        made.__dict__.update(given=self.given - set(names))
        return made

    # -------------------- what some families have

    def decaying_columns(self, dimension: int) -> set[int]:
        """Columns, of ``dimension`` in all, along which k(x, x') vanishes as x moves away from x'."""
        return set(range(dimension) if self.columns is None else self.columns) if self.decays else set()

    @property
    def has_mercer_expansion(self) -> bool:
        """Is there a closed-form Mercer expansion under normal inputs?"""
        return False

    def mercer(self, input_scale: Tensor) -> MercerExpansion:
        """Mercer expansion under x_j ~ N(0, input_scale_j^2), where it exists in closed form."""
        raise InvalidInputError(
            f"the {self._spoken_name()} kernel has no closed-form Mercer expansion under a Gaussian input measure. "
            "Use kernel='gaussian' over all columns with Mercer features, or SparseGP or ExactGP with this kernel."
        )

    @property
    def has_spectral_law(self) -> bool:
        """Is there a law of frequencies that Fourier features can draw from?"""
        return self.spectral_degrees is not None and self.columns is None

    def check_spectral_law(self) -> float:
        """Its degrees of freedom; refuses a kernel that has none."""
        if self.spectral_degrees is None or self.columns is not None:
            raise InvalidInputError(
                f"the {self._spoken_name()} kernel has no spectral law that Fourier features could draw from. Use a "
                "Gaussian or Matern kernel over all columns, or SparseGP or ExactGP with this kernel."
            )
        return self.spectral_degrees

    def spectral_radius_scale(self, u: Tensor) -> Tensor:
        """Quantile map of the random factor c in omega = c g, g ~ N(0, I): u (m,) uniform on (0, 1) -> (m,)."""
        return radius_scale(u, self.check_spectral_law())

    def spectral_log_density(self, omega: Tensor) -> Tensor:
        """Log density of the spectral law at unit length-scale, omega (m, d) -> (m,)."""
        return log_density(omega, self.check_spectral_law())

    def spectral_sample(self, count: int, dimension: int, rng: np.random.Generator) -> Tensor:
        """Independent frequencies eta (count, dimension) with k(x, x') = sf2 E cos(eta'(x - x'))."""
        g = torch.from_numpy(rng.standard_normal((count, dimension)))
        c = self.spectral_radius_scale(torch.from_numpy(rng.random(count)))
        return c[:, None] * g / self.values["length_scale"]

    def _spoken_name(self) -> str:
        return self.name + ("" if self.columns is None else f" (columns {list(self.columns)})")

    # -------------------- sums and products

    def __add__(self, other: Kernel) -> Kernel:
        from certgp.kernels.composite import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Kernel:
        from certgp.kernels.composite import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


def _check_columns(columns: Sequence[int]) -> tuple[int, ...]:
    whole = all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) and each >= 0 for each in columns)
    if not whole or len(columns) == 0 or len(set(columns)) != len(columns):
        raise InvalidInputError(f"columns must be distinct whole numbers from 0 on, found {columns!r}")
    return tuple(int(each) for each in columns)


def _format_value(value: Tensor) -> str:
    return np.array2string(value.detach().numpy(), precision=4, threshold=8, separator=", ")


def _pick_part(named: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What belongs to one part of all that is named."""
    start = prefix + BETWEEN
    return {name.removeprefix(start): value for name, value in named.items() if name.startswith(start)}


def _join_names(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The values of all parts under the names ``part__name``."""
    return {prefix + BETWEEN + name: value for prefix, values in parts.items() for name, value in values.items()}
