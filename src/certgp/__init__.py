"""certgp: low-rank Gaussian-process regression that proves how far it is from the exact GP."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.estimators import AutoGP, DeepFourierGP, DeepMercerGP, ExactGP, FourierGP, MercerGP, SparseGP, load

# Read when torch is loaded, so without effect where that came first. By default waiting OpenMP threads spin: they take
# the cores from the compiled loops' threads, and from other programs. Measured (docs/benchmarks.md): one evaluation on
# two threads beside one other busy process took 1.7 s instead of 0.08 s.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

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
