"""The inverse of an exact covariance as a product of sparse factors, with a low-rank part where that helps.

[Vecchia 1988; Sang and Huang 2012; Gyger, Furrer and Sigrist 2024]
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from certgp.features import NystromMap, greedy_inducing_points
from certgp.gp.conditionals import Indices, condition, condition_residual
from certgp.gp.neighbours import earlier_neighbours, search_coordinates
from certgp.kernels import Kernel
from certgp.linalg import cholesky, eye_like

Array = NDArray[np.float64]
NEIGHBOURS, NEIGHBOURS_BESIDE_FEATURES = 100, 30
RANK = 400
_SAMPLE = 3_000  # rows that inducing points are chosen from, and judged on
_WORTHWHILE = 0.5  # share of the prior variance from which on a low-rank part is used
_JITTER = 1e-8
_SEED = 0  # of the order
_BLOCK = 512


class VecchiaPreconditioner:
    r"""M = Phi Phi' + (W'W)^-1 for S = K + s2 I, and v -> M^-1 v.

    Rows are put in a random order (the same at every call) and each is conditioned, in the process that the features
    Phi leave, on the nearest rows before it: row i of W holds d_i^-1/2 for itself and -d_i^-1/2 v_i for its neighbours,
    d_i being the variance of its target given theirs. W (S - Phi Phi') W' then has ones on its diagonal and little
    beside it.

    Near rows know what varies quickly and Nystrom features what varies slowly, so features are used where they explain
    most of the prior. With G = W Phi, M^-1 = W'(I - G (I + G'G)^-1 G') W.

    With weights (N,) S is K + s2 diag(1 / weight), and the preconditioner is that of Q S Q, Q = diag(sqrt(weight)).
    """

    def __init__(
        self,
        kernel: Kernel,
        inputs: Tensor,
        noise_variance: float,
        neighbours: int | None = None,
        weight: Tensor | None = None,
    ) -> None:
        n = len(inputs)
        order = torch.from_numpy(np.random.default_rng(_SEED).permutation(n))
        rows = inputs[order]
        self._root = None if weight is None else weight.sqrt()
        noise = np.full(n, noise_variance) if weight is None else noise_variance / weight[order].numpy()
        features = _features(kernel, rows, noise_variance)
        self.rank = 0 if features is None else features.shape[1]
        self.neighbours = neighbours or (NEIGHBOURS if features is None else NEIGHBOURS_BESIDE_FEATURES)
        sets = earlier_neighbours(search_coordinates(kernel, rows), min(self.neighbours, max(n - 1, 1)))
        weights, variance = _condition(kernel, rows, features, sets, noise)
        d = variance + noise
        self._sparse = _sparse_factor(sets, weights, d, order.numpy())
        self._transposed = self._sparse.T.tocsr()
        self._log_determinant = float(np.log(d).sum())
        if features is not None:
            Phi = torch.empty_like(features)
            Phi[order] = features
            self._whitened = torch.from_numpy(self._sparse @ Phi.numpy())  # G (N, r)
            gram = self._whitened.mT @ self._whitened
            self._factor = cholesky(gram + eye_like(gram), "I + G'G of the preconditioner (raise noise_variance)")

    @property
    def log_determinant(self) -> float:
        """log det M; without features at least log det S, because KL(exact || Vecchia) >= 0 (V1)."""
        low_rank = 2.0 * float(self._factor.diagonal().log().sum()) if self.rank else 0.0
        return self._log_determinant + low_rank

    def __call__(self, v: Tensor) -> Tensor:
        """M^-1 v (N,), or Q^-1 M^-1 Q^-1 v with weights."""
        right = v if self._root is None else v / self._root
        half = torch.from_numpy(self._sparse @ right.numpy())
        if self.rank:
            inside = torch.cholesky_solve((self._whitened.mT @ half)[:, None], self._factor)[:, 0]
            half = half - self._whitened @ inside
        found = torch.from_numpy(self._transposed @ half.numpy())
        return found if self._root is None else found / self._root


@torch.no_grad()
def _features(kernel: Kernel, rows: Tensor, noise_variance: float) -> Tensor | None:
    """Phi (N, r) with the signal variance inside, where they explain most of the prior; rows are in random order."""
    unit, some = kernel.with_signal_variance(1.0), rows[:_SAMPLE]
    if len(rows) <= 2 * RANK:
        return None
    features = NystromMap(unit, greedy_inducing_points(unit, some, RANK), jitter=_JITTER)
    explained, prior = features(some).square().sum(1), unit.diagonal(some)
    if float(explained.sum()) < _WORTHWHILE * float(prior.sum()):
        return None
    scale = math.sqrt(float(kernel.signal_variance))
    return scale * torch.cat([features(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)])


@torch.no_grad()
def _condition(
    kernel: Kernel, rows: Tensor, features: Tensor | None, sets: Indices, noise: Array
) -> tuple[Array, Array]:
    """Weights (N, m) and variances (N,) of the rows given their neighbours, in the process that features leave."""
    blank = torch.zeros(len(rows), dtype=torch.float64)
    if features is None:
        found = condition(kernel, rows, rows, blank, sets, noise, with_weights=True)
        assert found.weights is not None
        return found.weights, found.variance
    return condition_residual(kernel, rows, features, rows, features, sets, noise)


def _sparse_factor(sets: Indices, weights: Array, d: Array, order: Indices) -> csr_matrix:
    """W (N, N), its columns in the order of the inputs."""
    n, present = len(sets), sets >= 0
    scale = 1.0 / np.sqrt(d)
    lines = np.concatenate([np.repeat(np.arange(n), present.sum(1)), np.arange(n)])
    columns = np.concatenate([order[sets[present]], order])
    entries = np.concatenate([(-scale[:, None] * weights)[present], scale])
    return csr_matrix((entries, (lines, columns)), shape=(n, n))
