"""Kernels by their names, for users who type them and for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from certgp.errors import InvalidInputError
from certgp.methods import find_registered

if TYPE_CHECKING:
    from certgp.kernels.base import Kernel

_KERNELS: dict[str, type[Kernel]] = {}


def register(family: type[Kernel]) -> None:
    """Make a family known by its name. Defining it anew, as a notebook does, replaces it; another one is refused."""
    known = _KERNELS.get(family.name)
    if known is not None and (known.__module__, known.__qualname__) != (family.__module__, family.__qualname__):
        raise InvalidInputError(
            f"there is a kernel {family.name!r} already ({known.__module__}.{known.__qualname__}); choose another name"
        )
    if not family.name.isidentifier():
        raise InvalidInputError(f"the name of a kernel must be an identifier, found {family.name!r}")
    _KERNELS[family.name] = family


def registered_kernels() -> dict[str, type[Kernel]]:
    """All families that can be asked for by name."""
    return {name: family for name, family in _KERNELS.items() if not family.composite}


def kernel_from_name(name: str) -> type[Kernel]:
    """Kernel class of a name such as 'gaussian' or 'matern32'."""
    known = registered_kernels()
    if name not in known:
        raise InvalidInputError(f"unknown kernel {name!r}; known kernels: {', '.join(sorted(known))}")
    return known[name]


def kernel_from_description(description: Mapping[str, Any]) -> Kernel:
    """The kernel that ``Kernel.describe`` described."""
    values = dict(description)
    name, parts, not_given = values.pop("kernel"), values.pop("parts", ()), values.pop("not_given", ())
    family: Any = find_registered(name, _KERNELS, "kernel")
    made: Kernel = family(*map(kernel_from_description, parts), **values)
    return made.without_given(not_given)
