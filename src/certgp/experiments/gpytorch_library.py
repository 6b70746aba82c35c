"""GPyTorch, where it is installed: two of the paper's baselines are built on it."""

from __future__ import annotations

import warnings

from certgp.errors import InvalidInputError

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit.script, in its linear_operator
        import gpytorch
except ModuleNotFoundError as error:
    raise InvalidInputError(
        f"SVIGP and DKL need GPyTorch ({error}); get it with: pip install 'certgp[baselines]'"
    ) from error

__all__ = ["gpytorch"]
