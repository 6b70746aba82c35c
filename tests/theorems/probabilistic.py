"""Checks of statements that hold with a stated probability: failures over seeds against a binomial law."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import torch
from scipy.stats import binomtest

import certgp.guarantees as g
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel
from certgp.gp.neighbours import earlier_neighbours, search_coordinates
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.guarantees.mercer_rank import trace_quantile
from certgp.kernels import Gaussian, Matern12, Matern32, Matern52
from certgp.transforms import Identity


def plausible(failures: int, trials: int, delta: float) -> bool:
    """Could this many failures come from a failure rate of at most delta?"""
    return bool(binomtest(failures, trials, delta, alternative="greater").pvalue > 1e-3)


def dense_kl(kernel: Gaussian, features: FeatureMap, X: torch.Tensor, noise: float) -> float:
    with torch.no_grad():
        K, phi = kernel(X, X).numpy(), features(X).numpy()
    eye = noise * np.eye(len(K))
    return g.gaussian_kl(K + eye, phi @ phi.T + eye)


def statistical_tightening(trials: int = 25, delta: float = 0.2) -> bool:
    """R2: the tightened interval holds the dense divergence, for a Fourier model and for the reference itself."""
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.standard_normal((120, 3)))
    kernel, noise = Gaussian(np.full(3, 1.0)), 0.05
    weak, strong = MercerMap(kernel, np.ones(3), 40), MercerMap(kernel, np.ones(3), 250)
    fourier = FourierMap(kernel, iid_design(kernel, 30, 3, rng))
    pairs = [(weak, weak), (fourier, weak), (fourier, strong)]
    return all(_tightening_holds(kernel, model, map_, X, noise, trials, delta) for model, map_ in pairs)


def _tightening_holds(
    kernel: Gaussian, features: FeatureMap, map_: FeatureMap, X: torch.Tensor, noise: float, trials: int, delta: float
) -> bool:
    model = LowRankModel(Identity(X.shape[1]), features)
    rows = Chunk(X, torch.zeros(len(X), dtype=torch.float64))
    reference = g.read_reference(g.Problem(model, 1.0, noise, ChunkSource(rows), LocalEngine()), map_)
    rigorous, truth = g.certify_through(reference), dense_kl(kernel, features, X, noise)
    wide = g.Interval(-math.inf, math.inf)  # so that the statistical interval is seen alone
    plain = g.Certificate(wide, None, len(X), rigorous.theorem, rigorous.evidence, ())
    failures = 0
    for seed in range(trials):
        tight = g.tighten(plain, reference, rows, delta, 24, np.random.default_rng(seed))
        failures += truth not in tight.kl
    return plausible(failures, trials, delta)


def rank_before_fitting(trials: int = 300, delta: float = 0.1) -> bool:
    """M1: the mean trace gap of fresh rows stays below its quantile bound."""
    failures, n, rank = 0, 60, 3
    kernel = Gaussian(1.0 / (2.0 * math.pi))
    features = MercerMap(kernel, [1.0 / 16.0], rank)
    bound = trace_quantile(features.tail(), n, delta, "sharp")
    for seed in range(trials):
        X = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, 1)) / 16.0)
        with torch.no_grad():
            failures += float((1.0 - features(X).square().sum(1)).mean()) > bound
    return plausible(failures, trials, delta)


def fourier_rank_suffices(trials: int = 10, delta: float = 0.05) -> bool:
    """F1: plain random features of the stated rank meet KL <= epsilon N."""
    X = np.random.default_rng(0).standard_normal((6, 1))
    epsilon, noise, failures = 0.0001, 1.0, 0
    bound = g.fourier_rank_bound(
        X=X, length_scale=0.5, noise_variance=noise, epsilon=epsilon, delta=delta, method="plain"
    )
    kernel = Gaussian(0.5)
    for seed in range(trials):
        features = FourierMap(kernel, iid_design(kernel, bound.rank // 2, 1, np.random.default_rng(seed)))
        failures += dense_kl(kernel, features, torch.from_numpy(X), noise) > epsilon * len(X)
    return plausible(failures, trials, delta)


def _local_problem() -> tuple[Matern32, torch.Tensor, float, g.LocalFactor, float]:
    """Kernel, inputs, noise, factor and dense divergence of a local GP with two neighbours."""
    X = torch.from_numpy(np.random.default_rng(0).standard_normal((150, 2)))
    kernel, noise = Matern32([0.4, 0.6], 1.3), 0.05
    local = g.local_factor(kernel, X, noise, earlier_neighbours(search_coordinates(kernel, X), 2))
    S = kernel(X, X).numpy() + noise * np.eye(len(X))
    return kernel, X, noise, local, 0.5 * (local.log_determinant().lower - np.linalg.slogdet(S)[1])


def matern_tails_are_bounded(nodes: int = 26) -> bool:
    """M2: bounds on eigenvalue tails are above those of a tensor Gauss quadrature of the operator, and close to them.

    Kinks of the kernel make the tails of the quadrature too small: 44 nodes raise them, most at rank 30 (by .0045).
    """
    for kernel in (Matern12([0.8, 0.8]), Matern12([0.3, 2.0]), Matern32([0.4, 0.9]), Matern52([0.5, 0.5])):
        points, weights = np.polynomial.legendre.leggauss(nodes)
        X = torch.from_numpy(0.5 * np.stack(np.meshgrid(points, points), -1).reshape(-1, 2))
        root = np.sqrt(0.25 * np.multiply.outer(weights, weights).ravel())
        with torch.no_grad():
            values = np.linalg.eigvalsh(root[:, None] * kernel(X, X).numpy() * root)[::-1]
        for rank in (1, 3, 10, 30):
            bound = g.mercer_tail(
                length_scale=kernel.values["length_scale"].numpy(),
                input_scale=0.5 / math.sqrt(3.0),
                rank=rank,
                kernel=kernel.name,
            )
            tail = 1.0 - float(values[:rank].sum())
            if not tail <= bound <= 1.15 * tail + 1e-2:
                return False
    return True


def probes_bracket(trials: int = 40, delta: float = 0.2) -> bool:
    """V9: the bracket by few probes holds the dense divergence of a local GP, after many Lanczos steps and one."""
    kernel, X, noise, local, truth = _local_problem()
    failures = {1: 0, 40: 0}
    for seed, steps in product(range(trials), failures):
        probes = g.draw_probes(local, delta, 2, np.random.default_rng(seed))
        found = g.bracket_by_probes(local, local, ExactCovariance(kernel, X, noise), probes, most_steps=steps)
        failures[steps] += truth not in found
    return all(plausible(count, trials, delta) for count in failures.values())


def sampled_rows_bound(trials: int = 60, delta: float = 0.2) -> bool:
    """V3+: few sampled rows, through near sets so large that their bounds are nearly exact."""
    kernel, X, _, local, truth = _local_problem()
    covariance, points, failures = g.KernelCovariance(kernel, X), search_coordinates(kernel, X), 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        failures += truth not in g.bracket_by_sample(local, local, covariance, X, points, 140, 6, delta, rng)
    return plausible(failures, trials, delta)


def sampled_full_scale_rows_bound(trials: int = 60, delta: float = 0.2) -> bool:
    """V8+: few sampled rows bound what V8 says of all rows."""
    kernel, X, noise, local, _ = _local_problem()
    points, covariance = search_coordinates(kernel, X), g.ResidualCovariance(kernel, NystromMap(kernel, X[:3]), X)
    given = (covariance, covariance.augment(X), points, local.sets, 60, noise)
    truth = g.full_scale_divergence_above(*given)
    draws = [g.full_scale_divergence_by_sample(*given, 6, delta, np.random.default_rng(seed)) for seed in range(trials)]
    return plausible(sum(bound < truth for bound in draws), trials, delta)


CHECKS = {
    "V8+": sampled_full_scale_rows_bound,
    "V9": probes_bracket,
    "V3+": sampled_rows_bound,
    "R2": statistical_tightening,
    "M1": rank_before_fitting,
    "M2": matern_tails_are_bounded,
    "F1": fourier_rank_suffices,
}
