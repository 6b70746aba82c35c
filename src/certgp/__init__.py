"""certgp: low-rank Gaussian-process regression that proves how far it is from the exact GP."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.estimators import AutoGP, DeepFourierGP, DeepMercerGP, ExactGP, FourierGP, MercerGP, SparseGP, load

__version__ = "0.1.0"
__all__ = [
    "AutoGP",
    "DeepFourierGP",
    "DeepMercerGP",
    "ExactGP",
    "FourierGP",
    "MercerGP",
    "SparseGP",
    "__version__",
    "load",
]


def __getattr__(name: str) -> object:
    # torch takes a second to import; `certgp --help` and `import certgp.errors` should not
    if name in __all__:
        return getattr(import_module("certgp.estimators"), name)
    raise AttributeError(f"module 'certgp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
