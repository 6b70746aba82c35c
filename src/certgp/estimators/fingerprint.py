"""What a checkpoint must share with a fit that goes on from it."""

from __future__ import annotations

import hashlib

from sklearn.base import BaseEstimator
from torch import nn

_OF_THE_SESSION = ("callbacks", "verbose", "checkpoint", "random_state", "engine", "max_seconds")


def fingerprint(estimator: BaseEstimator, rows: str, seed: object) -> str:
    """A digest of the parameters, the seed and the rows' own digest."""
    parameters = {k: v for k, v in sorted(estimator.get_params(deep=False).items()) if k not in _OF_THE_SESSION}
    plain = {k: repr(v) for k, v in parameters.items() if not isinstance(v, nn.Module)}
    digest = hashlib.sha256(repr((type(estimator).__name__, plain, seed, rows)).encode())
    for module in (v for v in parameters.values() if isinstance(v, nn.Module)):
        for name, tensor in module.state_dict().items():
            digest.update(f"{name}:{tuple(tensor.shape)}".encode() + tensor.detach().numpy().tobytes())
    return digest.hexdigest()
