"""One Gaussian conditional per row: f at a point given the targets of a few neighbours.  [Vecchia 1988]

    K_N = k(X_N, X_N) + s2 I,   v = K_N^-1 k(X_N, x),   mean = v'y_N,   variance = k(x, x) - k(X_N, x)'v

Rows may have noise variances of their own: then it is diag(s2_N) instead of s2 I.

Kernels that depend on scaled distances alone run as compiled loops; any other kernel is evaluated by its own code,
block by block, and only the algebra is compiled. Neighbours are row numbers (B, m); a row with fewer of them has -1 in
its last places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from certgp.errors import NotPositiveDefiniteError
from certgp.kernels import Kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
PROFILES = {"gaussian": 0, "matern12": 1, "matern32": 2, "matern52": 3}  # numbers of ``gp.compiled``
_ROWS_PER_THREAD = 32
_GROUP_ROWS = 256  # of one evaluation of a kernel that has no compiled profile
_BLOCK_NUMBERS = 2**21  # of covariances held at a time
_NOTHING = np.empty((0, 0))
_REMEDY = "raise noise_variance, or remove rows that repeat others"


def is_radial(kernel: Kernel) -> bool:
    """Does the kernel depend on |(x - x') / l| alone, with a compiled profile?"""
    return kernel.name in PROFILES


def coordinates(kernel: Kernel, X: Tensor) -> Tensor:
    """x / l (n, d) of the kernel's own columns, for a radial kernel; carries gradients."""
    return kernel.pick_columns(X) / kernel.values["length_scale"]


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Means and variances (B,) of f, and the weights (B, m) of the neighbours' targets where they were asked for."""

    mean: Array
    variance: Array
    weights: Array | None = None


@torch.no_grad()
def condition(
    kernel: Kernel,
    points: Tensor,
    X: Tensor,
    y: Tensor,
    neighbours: Indices,
    noise_variance: float | Array,
    with_weights: bool = False,
) -> Conditionals:
    """f at points (B, D) given y (n,) at their neighbours (B, m) among the rows X (n, D), with one noise variance or
    one for each of these (n,).
    """
    B, m = neighbours.shape
    noise = np.broadcast_to(np.asarray(noise_variance, dtype=np.float64), (len(X),))
    mean, variance = np.zeros(B), np.empty(B)
    weights = np.empty((B, m)) if with_weights else _NOTHING
    if is_radial(kernel):
        _condition_radial(kernel, points, X, y, neighbours, noise, mean, variance, weights)
    else:
        rows = max(1, _BLOCK_NUMBERS // (m + 1) ** 2)
        for part in (slice(start, start + rows) for start in range(0, B, rows)):
            block = gather(points[part], X, y, neighbours[part], noise=noise)
            K = float(kernel.signal_variance) * correlation_blocks(kernel, block.points)
            _run(
                "predict_from", len(K), K.numpy(), block.targets, block.counts, block.noise, mean[part],
                variance[part], np.empty((0, 0, 0)), weights[part] if with_weights else _NOTHING,
            )  # fmt: skip
    check_factorised(variance, kernel, float(noise.min()))
    return Conditionals(mean, np.maximum(variance, 0.0), weights if with_weights else None)


def _condition_radial(
    kernel: Kernel, points: Tensor, X: Tensor, y: Tensor, neighbours: Indices, noise: Array, mean: Array,
    variance: Array, weights: Array,
) -> None:  # fmt: skip
    if not len(weights):
        Z, at = (coordinates(kernel, rows).double().contiguous().numpy() for rows in (X, points))
        own = np.ascontiguousarray(noise)
        arguments = (PROFILES[kernel.name], at, Z, y.numpy(), own, neighbours, float(kernel.signal_variance))
        _run("predict", len(at), *arguments, mean, variance)
        return
    _weigh_radial(kernel, points, X, _no_features(points), _no_features(X), neighbours, noise, weights, variance)
    used = np.where(neighbours >= 0, neighbours, 0)
    mean[:] = np.einsum("bm,bm->b", weights, y.numpy()[used])


@torch.no_grad()
def condition_residual(
    kernel: Kernel,
    points: Tensor,
    own: Tensor,
    X: Tensor,
    features: Tensor,
    neighbours: Indices,
    noise_variance: float | Array,
) -> tuple[Array, Array]:
    """Weights (B, m) of the neighbours and variances (B,) of the points, in the process k(x, x') - phi(x)'phi(x').

    ``own`` (B, r) are the features of the points, ``features`` (n, r) those of the rows X, signal variance inside;
    noise as in ``condition``.
    """
    B, m = neighbours.shape
    noise = np.broadcast_to(np.asarray(noise_variance, dtype=np.float64), (len(X),))
    weights, variance = np.empty((B, m)), np.empty(B)
    if is_radial(kernel):
        _weigh_radial(kernel, points, X, own, features, neighbours, noise, weights, variance)
    else:
        blank, rows = torch.zeros(len(X), dtype=torch.float64), max(1, _BLOCK_NUMBERS // (m + 1) ** 2)
        for part in (slice(start, start + rows) for start in range(0, B, rows)):
            block = gather(points[part], X, blank, neighbours[part], noise=noise)
            phi = gather(own[part], features, blank, neighbours[part]).points
            K = float(kernel.signal_variance) * correlation_blocks(kernel, block.points) - phi @ phi.mT
            _run(
                "predict_from", len(K), K.numpy(), block.targets, block.counts, block.noise, np.empty(len(K)),
                variance[part], np.empty((0, 0, 0)), weights[part],
            )  # fmt: skip
    check_factorised(variance, kernel, float(noise.min()))
    return weights, np.maximum(variance, 0.0)


def _weigh_radial(
    kernel: Kernel, points: Tensor, X: Tensor, own: Tensor, features: Tensor, neighbours: Indices, noise: Array,
    weights: Array, variance: Array,
) -> None:  # fmt: skip
    Z, at = (coordinates(kernel, rows).double().contiguous().numpy() for rows in (X, points))
    phi, phi_own = (some.double().contiguous().numpy() for some in (features, own))
    each, signal = np.ascontiguousarray(noise), float(kernel.signal_variance)
    _run("weigh", len(at), PROFILES[kernel.name], at, phi_own, Z, phi, each, neighbours, signal, weights, variance)


def _no_features(X: Tensor) -> Tensor:
    return torch.empty((len(X), 0), dtype=torch.float64)


def sparse_weights(neighbours: Indices, weights: Array, n: int) -> csr_matrix:
    """Weights (B, m) of neighbours as a matrix (B, n)."""
    present = neighbours >= 0
    lines = np.repeat(np.arange(len(neighbours)), present.sum(1))
    return csr_matrix((weights[present], (lines, neighbours[present])), shape=(len(neighbours), n))


@dataclass(frozen=True, eq=False)
class Block:
    """Neighbours and points of some rows, the point after the last neighbour and again in places without one."""

    points: Tensor  # (B, m + 1, D)
    targets: Array  # (B, m + 1), the last of each row its own, where it is known
    noise: Array  # (B, m + 1) noise variances, likewise
    counts: Indices  # (B,) neighbours


def gather(
    points: Tensor,
    X: Tensor,
    y: Tensor,
    neighbours: Indices,
    own: Tensor | None = None,
    noise: Array | None = None,
    own_noise: Array | None = None,
) -> Block:
    """What the conditionals of some rows need, of rows X (n, D), y (n,) with noise variances (n,), one where they are
    not given; ``own`` (B,) are the points' targets and ``own_noise`` (B,) their noise.
    """
    counts = (neighbours >= 0).sum(1)
    index = torch.from_numpy(np.where(neighbours >= 0, neighbours, 0))
    present = torch.from_numpy(neighbours >= 0)
    beside = torch.where(present[:, :, None], X[index], points[:, None, :])
    target = torch.zeros(len(points), dtype=y.dtype) if own is None else own
    targets = torch.where(present, y[index], target[:, None])
    mine = np.ones(len(points)) if own_noise is None else own_noise
    theirs = (np.ones(len(X)) if noise is None else noise)[index.numpy()]
    scatter = np.column_stack([np.where(neighbours >= 0, theirs, mine[:, None]), mine])
    together = torch.cat([beside, points[:, None, :]], 1)
    return Block(together, torch.cat([targets, target[:, None]], 1).numpy(), scatter, counts)


def correlation_blocks(kernel: Kernel, P: Tensor) -> Tensor:
    """k(P_b, P_b) / sf2 (B, m + 1, m + 1) for points P (B, m + 1, D), by the kernel's own code; carries gradients.

    Several blocks share one evaluation, of whose result only the blocks on the diagonal are used: for small blocks the
    cost of a call is larger than that of its numbers.
    """
    B, size, D = P.shape
    group = max(1, _GROUP_ROWS // size)
    parts = []
    for start in range(0, B, group):
        some = P[start : start + group]
        flat = some.reshape(-1, D)
        K = kernel.unit(flat, flat).reshape(len(some), size, len(some), size)
        parts.append(K.diagonal(dim1=0, dim2=2).permute(2, 0, 1))
    return torch.cat(parts)


@dataclass(frozen=True, eq=False)
class Loss:
    """Sum over rows of 1/2 log 2 pi d + e^2 / 2 d, d = sf2 (variance + g), and its gradient."""

    value: float
    by_log_signal: float
    by_log_ratio: float


def radial_loss(
    kernel: Kernel,
    Z: Tensor,
    y: Tensor,
    rows: Indices,
    neighbours: Indices,
    signal: float,
    ratio: float,
    weight: Tensor | None = None,
) -> tuple[Loss, Tensor]:
    """The loss of the rows of Z (n, d) at the given numbers, and its gradient (n, d) in the coordinates Z. With weights
    (n,) the noise of a row is its ratio over its weight.
    """
    points, numbers = Z.numpy(), y.numpy()
    noise = np.full(len(numbers), ratio) if weight is None else ratio / weight.numpy()
    (B, m), d = neighbours.shape, Z.shape[1]
    mean, variance, by_noise, by_points = np.empty(B), np.empty(B), np.empty(B), np.empty((B, d, m + 1))
    targets = numbers[rows]
    _run(
        "differentiate", B, PROFILES[kernel.name], points[rows], targets, noise[rows], points, numbers, noise,
        neighbours, signal, mean, variance, by_points, by_noise,
    )  # fmt: skip
    check_factorised(variance, kernel, ratio)
    by_Z = _scatter(by_points, rows, neighbours, Z)
    return _loss(targets - mean, variance + noise[rows], signal, float(by_noise.sum())), by_Z


def _scatter(by_points: Array, rows: Indices, neighbours: Indices, Z: Tensor) -> Tensor:
    """Gradients (B, d, m + 1) in the coordinates of neighbours and rows, added up by row of Z (n, d)."""
    place = np.concatenate([neighbours, np.full((len(rows), 1), -1)], 1)
    place[np.arange(len(rows)), (neighbours >= 0).sum(1)] = rows
    kept = torch.from_numpy(place >= 0)
    return torch.zeros_like(Z).index_add_(
        0, torch.from_numpy(place)[kept], torch.from_numpy(by_points).transpose(1, 2)[kept]
    )


def radial_residual_gradient(
    kernel: Kernel,
    Z: Tensor,
    phi: Tensor,
    rows: Indices,
    neighbours: Indices,
    noise: Array,
    sides: Array,
    by_d: Array,
    by_side: Array,
) -> tuple[Tensor, Array, float]:
    """The gradient of a loss of the variances d and of s'v of ``condition_residual`` at unit signal variance.

    by_d (B,) and by_side (B,) are the loss's derivatives in d, noise included, and in s'v with s = ``sides`` (B, m).
    Gives the gradient in the coordinates Z (n, d) at fixed features, C_N^-1 s (B, m), and the gradient in the logarithm
    of a factor of all noise (n,).
    """
    points, features = Z.contiguous().numpy(), phi.contiguous().numpy()
    (B, m), d = neighbours.shape, Z.shape[1]
    solved, by_points, by_noise = np.empty((B, m)), np.empty((B, d, m + 1)), np.empty(B)
    _run(
        "differentiate_residual", B, PROFILES[kernel.name], points[rows], features[rows], noise[rows], points, features,
        noise, neighbours, np.ascontiguousarray(sides), by_d, by_side, solved, by_points, by_noise,
    )  # fmt: skip
    check_factorised(by_noise, kernel, float(noise.min()))
    return _scatter(by_points, rows, neighbours, Z), solved, float(by_noise.sum())


def residual_gradient(
    kernel: Kernel, R: Tensor, counts: Indices, noise: Array, sides: Array, by_d: Array, by_side: Array
) -> tuple[Tensor, Array]:
    """As ``radial_residual_gradient``, in the residual correlations R (B, m + 1, m + 1), with noise (B, m + 1); and
    C_N^-1 s (B, m).
    """
    by_R, solved = np.zeros(tuple(R.shape)), np.zeros(sides.shape)
    _run(
        "differentiate_residual_from", len(R), R.contiguous().numpy(), np.ascontiguousarray(sides), counts, noise, by_d,
        by_side, solved, by_R,
    )  # fmt: skip
    check_factorised(by_R[:, 0, 0], kernel, float(noise.min()))
    return torch.from_numpy(by_R), solved


def general_loss(K: Tensor, block: Block, signal: float, ratio: float, kernel: Kernel) -> tuple[Loss, Tensor]:
    """The loss of rows with correlations K (B, m + 1, m + 1), and its gradient in K; noise is ``ratio`` times that of
    the block.
    """
    B, size, _ = K.shape
    noise = ratio * block.noise
    mean, variance, by_K = np.empty(B), np.empty(B), np.zeros((B, size, size))
    scaled = block.targets / np.sqrt(signal)
    _run("predict_from", B, K.detach().numpy(), scaled, block.counts, noise, mean, variance, by_K, _NOTHING)
    check_factorised(variance, kernel, ratio)
    own = scaled[np.arange(B), block.counts]
    by_ratio = float(np.einsum("bii,bi->", by_K, noise))
    return _loss((own - mean) * np.sqrt(signal), variance + noise[:, -1], signal, by_ratio), torch.from_numpy(by_K)


def _loss(error: Array, d: Array, signal: float, by_log_ratio: float) -> Loss:
    squares = np.square(error) / (signal * d)
    value = 0.5 * float(np.sum(np.log(2.0 * np.pi * signal * d) + squares))
    return Loss(value, 0.5 * float(np.sum(1.0 - squares)), by_log_ratio)


def check_factorised(variance: Array, kernel: Kernel, noise: float) -> None:
    """Refuse conditionals whose factorisation failed, which left NaN."""
    failed = np.flatnonzero(np.isnan(variance))
    if len(failed):
        raise NotPositiveDefiniteError(
            f"the covariance of the neighbours of {len(failed)} row(s), the first of them row {failed[0]}, is not "
            f"positive definite in float64 arithmetic ({kernel.name} kernel, noise {noise:.2g}); {_REMEDY}"
        )


def _run(name: str, n: int, *arguments: object) -> None:
    """A compiled loop over n rows."""
    from certgp.gp import compiled
    from certgp.loops import run_over_rows

    run_over_rows(vars(compiled)[name], n, *arguments, rows_per_thread=_ROWS_PER_THREAD)
