"""What a checkpoint must share with a fit that goes on from it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import nn

_OF_THE_SESSION = ("callbacks", "verbose", "checkpoint", "random_state", "engine")
_ROWS_READ = 1_000


def fingerprint(estimator: BaseEstimator, X: NDArray[Any], y: NDArray[Any], seed: object) -> str:
    """A digest of the parameters, the seed, the shape of the data and a thousand rows spread over them."""
    parameters = {k: v for k, v in sorted(estimator.get_params(deep=False).items()) if k not in _OF_THE_SESSION}
    plain = {k: repr(v) for k, v in parameters.items() if not isinstance(v, nn.Module)}
    digest = hashlib.sha256(repr((type(estimator).__name__, plain, seed, X.shape, str(X.dtype))).encode())
    for rows in (X, y):
        spread = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_READ)).astype(np.int64)
        digest.update(np.ascontiguousarray(rows[spread]).tobytes())
    for module in (v for v in parameters.values() if isinstance(v, nn.Module)):
        for name, tensor in module.state_dict().items():
            digest.update(f"{name}:{tuple(tensor.shape)}".encode() + tensor.detach().numpy().tobytes())
    return digest.hexdigest()
