"""Oracles and problem builders that the tests share: dense, slow and independent of the fast code paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor, nn

from certgp.data import RowSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, MercerMap
from certgp.gp import LowRankModel, Statistics
from certgp.gp.local import LocalProcess
from certgp.gp.neighbours import earlier_neighbours
from certgp.guarantees import gaussian_kl
from certgp.kernels import (
    Gaussian,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Sum,
)
from certgp.training import LowRankObjective
from certgp.transforms import Identity

Array = NDArray[np.float64]
ALL_KERNELS: tuple[type[Kernel], ...] = (Gaussian, Matern12, Matern32, Matern52)
CONSTANT: dict[str, Kernel] = {  # for two columns, k(x, x) constant
    "rational_quadratic": RationalQuadratic([0.7, 1.9], 1.3, 0.6),
    "periodic": Periodic([0.8, 1.5], [1.7, 2.9], 0.7),
    "columns": Gaussian([0.9], 1.4, columns=[1]),
    "sum": Gaussian([0.7, 1.4], 0.8) + Matern32(1.1, 0.5) + Gaussian(3.0, 0.2, columns=[0]),
    "product": Matern32([0.9, 2.0], 1.5) * Periodic(1.2, 2.3, 0.6),
    "nested": (Gaussian(0.8) + RationalQuadratic(1.5, 2.0, columns=[1])) * Matern52(2.0) + Periodic(columns=[0]),
}
VARYING: dict[str, Kernel] = {
    "linear": Linear([0.4, 1.7], [0.3, -0.2]),
    "gaussian + linear": Gaussian([0.7, 1.4], 0.8) + Linear([0.4, 1.7], [0.3, -0.2]),
    "linear first": Linear(0.6) + Matern32(1.1, 0.5),
    "linear * periodic": Linear(0.6, columns=[1]) * Periodic(1.2, 2.3) + Gaussian(1.0),
}
_PRIMES = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])


def kron(rows: int, dimension: int, shift: float) -> Array:
    """Kronecker points u_ij = frac(shift + i sqrt(p_j)), i = 1 .. rows: even, and the same on every machine."""
    return np.mod(shift + np.outer(np.arange(1, rows + 1), np.sqrt(_PRIMES[:dimension])), 1.0)


def normal_points(rows: int, dimension: int, shift: float = 0.5) -> Tensor:
    """Kronecker points through the normal quantile function: (rows, dimension)."""
    return torch.from_numpy(ndtri(kron(rows, dimension, shift)))


def tensor(values: object) -> Tensor:
    """A float64 tensor."""
    return torch.as_tensor(np.asarray(values, dtype=np.float64))


def dense_kl(K: Tensor, Sigma: Tensor, noise: float) -> float:
    """KL(N(0, K + s2 I) || N(0, Sigma + s2 I)) by the textbook formula, which bottoms out near 1e-16 N."""
    eye = torch.eye(K.shape[0], dtype=torch.float64)
    S1, S2 = K + noise * eye, Sigma + noise * eye
    trace = float(torch.linalg.solve(S2, S1).trace())
    return 0.5 * (trace - K.shape[0] + float(torch.logdet(S2) - torch.logdet(S1)))


def kl_of_dropped_features(kept: Tensor, dropped: Tensor, noise: float) -> float:
    """The same KL to full precision when E = K - Sigma = dropped dropped'.

    KL = 1/2 sum(e - log(1 + e)) with e the eigenvalues of S2^-1/2 E S2^-1/2.
    """
    S2 = kept @ kept.mT + noise * torch.eye(kept.shape[0], dtype=torch.float64)
    half = torch.linalg.solve_triangular(torch.linalg.cholesky(S2), dropped, upper=False)
    e = torch.linalg.svdvals(half).square()
    return 0.5 * float((e - e.log1p()).sum())


def dense_log_evidence(S: Tensor, y: Tensor) -> float:
    """log N(y | 0, S), by scipy-free dense algebra."""
    return float(torch.distributions.MultivariateNormal(torch.zeros_like(y), S).log_prob(y))


_BY_DISTANCE: dict[type[Kernel], Callable[[Array, Kernel], Array]] = {
    Gaussian: lambda r, k: np.exp(-0.5 * r**2),
    Matern12: lambda r, k: np.exp(-r),
    Matern32: lambda r, k: (1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r),
    Matern52: lambda r, k: (1.0 + np.sqrt(5.0) * r + 5.0 / 3.0 * r**2) * np.exp(-np.sqrt(5.0) * r),
    RationalQuadratic: lambda r, k: (1.0 + r**2 / (2.0 * float(k.alpha))) ** -float(k.alpha),
}


def dense_kernel(kernel: Kernel, X: Array, Z: Array) -> Array:
    """k(X, Z) by differences of the inputs as they are given: not the library's own arithmetic."""
    if isinstance(kernel, Sum):
        return sum(dense_kernel(part, X, Z) for part in kernel.parts.values())
    sf2 = 1.0 if isinstance(kernel, Linear) else float(kernel.signal_variance)
    if isinstance(kernel, Product):
        return sf2 * np.prod([dense_kernel(part, X, Z) for part in kernel.parts.values()], axis=0)
    if kernel.columns is not None:
        X, Z = X[:, kernel.columns], Z[:, kernel.columns]
    values = {name: value.detach().numpy() for name, value in kernel.values.items()}
    if isinstance(kernel, Linear):
        return ((X - values["centre"]) * values["variance"]) @ (Z - values["centre"]).T
    differences = X[:, None, :] - Z[None, :, :]
    if isinstance(kernel, Periodic):
        arcs = np.sin(np.pi * differences / values["period"]) / values["length_scale"]
        return sf2 * np.exp(-2.0 * np.square(arcs).sum(2))
    distance = np.sqrt(np.square(differences / values["length_scale"]).sum(2))
    return sf2 * _BY_DISTANCE[type(kernel)](distance, kernel)


def identity_model(features: FeatureMap) -> LowRankModel:
    """The features on untransformed inputs."""
    return LowRankModel(Identity(features.dimension), features)


@torch.no_grad()
def feature_statistics(features: FeatureMap, X: Tensor, y: Tensor, signal_variance: float = 1.0) -> Statistics:
    """Statistics of the finished features (not of the raw basis), carrying the signal variance."""
    kernel = features.fixed_kernel()
    diagonal = None if kernel.constant_diagonal else kernel.diagonal(X)
    return Statistics.of(features(X), y, diagonal).scaled(signal_variance)


def mercer_map_of(kernel: Kernel, input_scale: object, indices: object, centre: Tensor | None = None) -> MercerMap:
    """A Mercer map with a given index set."""
    features = MercerMap(kernel, tensor(input_scale), 1, centre=centre, dimension=np.asarray(indices).shape[1])
    features.set_indices(np.asarray(indices, dtype=np.int64))
    return features


INPUT_LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-2.0, 2.0, shape),
    "heavy": lambda rng, shape: np.clip(rng.standard_t(2.0, shape), -15.0, 15.0),
    "shifted": lambda rng, shape: 3.0 + 0.5 * rng.standard_normal(shape),
    "duplicated": lambda rng, shape: np.round(rng.standard_normal(shape)),
}


def random_inputs(seed: int, rows: int, dimension: int, law: str = "normal") -> Tensor:
    """Inputs of a named law."""
    return torch.from_numpy(INPUT_LAWS[law](np.random.default_rng(seed), (rows, dimension)))


def random_target(X: Tensor, seed: int, noise: float = 0.1) -> Tensor:
    """A smooth nonlinear function of the rows plus noise."""
    rng = np.random.default_rng(seed + 10_000)
    direction = torch.from_numpy(rng.standard_normal(X.shape[1]))
    return torch.sin(X @ direction) + 0.3 * X[:, 0] + noise**0.5 * torch.from_numpy(rng.standard_normal(X.shape[0]))


def relative_error(found: object, expected: object) -> float:
    """max |found - expected| / max |expected|."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), np.finfo(float).tiny))


def central_differences(function: Callable[[Array], float], at: Array, step: float) -> Array:
    """Gradient by central differences of two step sizes with Richardson's extrapolation, O(step^4)."""

    def difference(i: int, h: float) -> float:
        shift = np.zeros_like(at)
        shift[i] = h
        return (function(at + shift) - function(at - shift)) / (2.0 * h)

    return np.array([(4.0 * difference(i, step / 2.0) - difference(i, step)) / 3.0 for i in range(at.size)])


def randomise(module: nn.Module, seed: int, size: float) -> None:
    """Move every parameter off its starting value, so that no gradient vanishes by symmetry."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(size * torch.randn(p.shape, dtype=p.dtype, generator=generator))


def z_scores(estimates: Array, target: Array) -> Array:
    """(mean over seeds - target) / standard error, per column of estimates (seeds, columns)."""
    error = estimates.std(axis=0, ddof=1) / np.sqrt(estimates.shape[0])
    return (estimates.mean(axis=0) - target) / error


def standard_errors(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    a = np.fromiter(values, dtype=np.float64)
    return float(a.mean()), float(a.std(ddof=1) / np.sqrt(a.size))


def objective_value(model: LowRankModel, source: RowSource, objective: str) -> float:
    """What an optimiser sees at the model's present parameters, per row."""
    target = LowRankObjective(model, source, LocalEngine(), objective)
    return target.evaluate(target.start())[0]


def local_divergence(process: LocalProcess) -> float:
    """KL(exact || local) on the training rows, in their order, by dense linear algebra."""
    X, n = process.inputs.numpy(), process.n_rows
    S = dense_kernel(process.kernel, X, X) + process.noise_variance * np.eye(n)
    sets = earlier_neighbours(process.index.points, process.train_neighbours)
    U, d = np.eye(n), np.empty(n)
    for i in range(n):
        near = sets[i][sets[i] >= 0]
        v = np.linalg.solve(S[np.ix_(near, near)], S[near, i]) if len(near) else np.empty(0)
        U[i, near], d[i] = -v, S[i, i] - v @ S[near, i]
    half = np.linalg.solve(U, np.diag(np.sqrt(d)))
    return gaussian_kl(S, half @ half.T)
