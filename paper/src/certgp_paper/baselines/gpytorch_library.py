"""GPyTorch, imported quietly: two of the paper's baselines are built on it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit.script, in its linear_operator
    import gpytorch

__all__ = ["gpytorch", "without_deprecations"]


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Torch's remarks on how GPyTorch's linear_operator builds sparse matrices; numerical warnings still come."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module=r"linear_operator\.")
        yield
