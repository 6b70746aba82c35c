"""What Nystrom features say of their own arithmetic, against 40 digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import torch

from certgp.features import NystromMap
from certgp.kernels import Gaussian


def exact_squares(X: np.ndarray, Z: np.ndarray, jitter: float) -> list[mp.mpf]:
    """|phi(x)|^2 = k_x'(K_zz + jitter I)^-1 k_x of the unit Gaussian kernel."""

    def kernel(A: np.ndarray, B: np.ndarray) -> mp.matrix:
        return mp.matrix([[mp.e ** (-((mp.mpf(a) - mp.mpf(b)) ** 2) / 2) for b in B.tolist()] for a in A.tolist()])

    K = kernel(X, Z)
    solved = (kernel(Z, Z) + mp.mpf(jitter) * mp.eye(len(Z))) ** -1 * K.T
    return [sum(K[i, j] * solved[j, i] for j in range(len(Z))) for i in range(len(X))]


@pytest.mark.parametrize("distance", [0.0, 60.0, 1e5])
@pytest.mark.parametrize("jitter", [1e-6, 1e-9])
def test_features_exceed_their_exact_size_by_no_more_than_they_say(distance, jitter):
    rng = np.random.default_rng(0)
    Z = np.sort(rng.standard_normal(12)) + distance * np.repeat([-1.0, 1.0], 6)
    X = Z[:4] + 0.1 * rng.standard_normal(4)
    features = NystromMap(Gaussian([1.0]), torch.from_numpy(Z[:, None]), jitter=jitter)
    with torch.no_grad():
        found = features(torch.from_numpy(X[:, None])).square().sum(1).tolist()
    with mp.workdps(40):
        excess = max(float(mp.mpf(f) - e) for f, e in zip(found, exact_squares(X, Z, jitter), strict=True))
    assert abs(excess) <= features.rounding()
    if distance == 0.0:
        assert 1e-12 < features.rounding() < 1e-6  # no bound is worth much beyond
