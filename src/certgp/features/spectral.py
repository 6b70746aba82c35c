"""Where Fourier features put their frequencies: quadratures of the spectral law at unit length-scale.  [theory sec. 5]

A design is m frequencies omega_i and weights a_i^2 such that sum_i a_i^2 cos(omega_i't) estimates the correlation
rho(t) without bias. ``iid``, ``orthogonal`` and ``sobol`` draw from the spectral law itself (weights 1 / m);
``widened``, ``modified`` and ``leverage`` draw from another law q and weigh by p / (m q). Weights are not
renormalised: that would bias them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import erf, ndtri
from scipy.stats import qmc
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.kernels import Gaussian, Kernel
from certgp.linalg import cholesky, eye_like, solve_lower

SAMPLINGS = ("iid", "orthogonal", "sobol", "widened", "leverage", "modified")
_MODIFIED_HEIGHT_CONSTANT = 161.0  # 12.4 * 20 * c = 200^2 (theory 5.1)


@dataclass(frozen=True, eq=False)
class SpectralDesign:
    """Frequencies and weights of a Fourier feature map at unit length-scale."""

    frequencies: Tensor  # (m, d)
    weights: Tensor  # (m,), a_i^2


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What data-dependent designs need to know: inputs in units of the length-scale, and the noise relative to the
    signal.
    """

    scaled_inputs: Tensor  # (n0, d), a subsample of the rows
    n_rows: int
    noise_ratio: float  # s2 / sf2


def spectral_design(
    sampling: str, kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator, data: DataSummary | None = None
) -> SpectralDesign:
    """Draw a design by name; ``leverage`` and ``modified`` look at the data."""
    kernel.check_spectral_law()
    simple: dict[str, Callable[[], SpectralDesign]] = {
        "iid": lambda: iid_design(kernel, pairs, dimension, rng),
        "orthogonal": lambda: orthogonal_design(kernel, pairs, dimension, rng),
        "sobol": lambda: sobol_design(kernel, pairs, dimension, rng),
        "widened": lambda: widened_design(kernel, pairs, dimension, rng),
    }
    if sampling in simple:
        return simple[sampling]()
    if sampling not in SAMPLINGS:
        raise InvalidInputError(f"unknown sampling {sampling!r}; choose one of {', '.join(SAMPLINGS)}")
    if data is None:
        raise InvalidInputError(f"sampling={sampling!r} depends on the data; fit it on rows first")
    if sampling == "leverage":
        return leverage_design(kernel, pairs, data, rng)
    return modified_design(kernel, pairs, data, rng)


def iid_design(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
    """Independent draws from the spectral law."""
    unit = kernel.replace(length_scale=1.0, signal_variance=1.0)
    return _equal_weights(unit.spectral_sample(pairs, dimension, rng))


def orthogonal_design(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
    """Blocks of d orthogonal directions, each with the length of an independent draw [Yu et al. 2016]: marginally
    exact.
    """
    blocks = math.ceil(pairs / dimension)
    directions = np.concatenate([_random_rotation(dimension, rng) for _ in range(blocks)])[:pairs]
    lengths = np.linalg.norm(rng.standard_normal((pairs, dimension)), axis=1)
    scale = kernel.spectral_radius_scale(torch.from_numpy(rng.random(pairs)))
    return _equal_weights(scale[:, None] * torch.from_numpy(directions * lengths[:, None]))


def sobol_design(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> SpectralDesign:
    """Scrambled Sobol points through the quantile functions of the spectral law."""
    return _equal_weights(_sobol_frequencies(kernel, pairs, dimension, rng))


def widened_design(
    kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator, widening: float | None = None
) -> SpectralDesign:
    """Sobol points of the law stretched by ``widening`` >= 1, weighed by p / q: more high frequencies, where leverage
    sits.

    The default 1 + 1.5 / d is the stretch that minimised the expected KL for d = 1, 2, 3, 5 (theory 5.4). It pays off
    once the rank exceeds the effective dimension of the problem and costs accuracy below that.
    """
    stretch = 1.0 + 1.5 / dimension if widening is None else widening
    omega = stretch * _sobol_frequencies(kernel, pairs, dimension, rng)
    log_ratio = kernel.spectral_log_density(omega) - _stretched_log_density(kernel, omega, stretch)
    return SpectralDesign(omega, log_ratio.exp() / pairs)


def leverage_design(
    kernel: Kernel, pairs: int, data: DataSummary, rng: np.random.Generator, pool_factor: int = 50
) -> SpectralDesign:
    r"""Resample a widened pool by ridge leverage tau(omega) = p(omega) z*(K + s2 I)^-1 z.  [Avron et al. 2017; theory
    5.2, 5.3]

    z holds exp(i omega'x) at a subsample of n0 rows whose noise is scaled by n0 / N, so that leverages keep their
    order. The pool has 50 times as many frequencies as are kept: resampling cannot do better than the pool itself.
    """
    X = data.scaled_inputs
    pool = widened_design(kernel, max(pool_factor * pairs, 2000), X.shape[1], rng)
    noise = max(data.noise_ratio, 1e-10) * X.shape[0] / data.n_rows
    unit = kernel.replace(length_scale=1.0, signal_variance=1.0)
    K = unit(X, X)
    L = cholesky(K + noise * eye_like(K), "K + s2 I of the leverage subsample (raise noise_variance)")
    angle = X @ pool.frequencies.mT
    tau = solve_lower(L, angle.cos()).square().sum(0) + solve_lower(L, angle.sin()).square().sum(0)
    probability = (pool.weights * tau).numpy()
    probability /= probability.sum()
    # systematic resampling: one uniform, equally spaced quantiles; unbiased like independent draws, with less variance.
    # Through a shuffled pool: equal steps through Sobol points, whose order is periodic, would meet the same few again
    order = rng.permutation(len(probability))
    grid = (rng.random() + np.arange(pairs)) / pairs
    cumulative = np.cumsum(probability[order])
    pick = order[np.minimum(np.searchsorted(cumulative / cumulative[-1], grid), len(probability) - 1)]
    return SpectralDesign(pool.frequencies[pick], pool.weights[pick] / torch.from_numpy(pairs * probability[pick]))


def modified_design(kernel: Kernel, pairs: int, data: DataSummary, rng: np.random.Generator) -> SpectralDesign:
    r"""The modified density of Avron et al. (Thm 12), on which the paper's Thm 2 rests, taken literally.  [theory 5.1]

    With n = N / s2 and p = N(0, I): uniform of height H = (12.4 max(R, c log^1.5 n))^d + 1 on the box |omega|_inf <= b,
    b = 10 sqrt(log n), and n p(omega) prod_j max(1, |omega_j|) outside. Almost all draws land where p vanishes, so the
    variance of the weights grows like (2 b)^d: usable for d <= 2, and offered because the theorem speaks of it.
    """
    if kernel.name != Gaussian.name:
        raise InvalidInputError(
            "sampling='modified' is defined for the gaussian kernel only; use 'widened' or 'leverage'"
        )
    X = data.scaled_inputs
    d = X.shape[1]
    log_n = math.log(max(data.n_rows / max(data.noise_ratio, 1e-10), math.e))
    radius = float((X.max(0).values - X.min(0).values).max()) / (2.0 * math.pi)  # in Avron's units x / (2 pi l)
    half_width = 10.0 * math.sqrt(log_n)
    log_height = d * math.log(12.4 * max(radius, _MODIFIED_HEIGHT_CONSTANT * log_n**1.5))
    omega, log_density = sample_modified_density(pairs, d, half_width, log_height, log_n, rng)
    log_weight = kernel.spectral_log_density(omega) - log_density
    return SpectralDesign(omega, log_weight.exp() / pairs)


def sample_modified_density(
    count: int, dimension: int, half_width: float, log_height: float, log_n: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    r"""Draw from q ∝ H on the box, n prod_j g1(omega_j) outside, g1(u) = (2 pi)^-1/2 e^{-u^2/2} max(1, |u|), in O(d)
    each.

    Outside the box, region j ("the first coordinate outside is j") has mass (A - T)^j T A^{d-1-j} with A = int g1 and
    T its tail beyond the half-width. Returns frequencies (count, d) and the normalised log density (count,).
    """
    A = erf(math.sqrt(0.5)) + 2.0 * math.exp(-0.5) / math.sqrt(2.0 * math.pi)
    T = 2.0 * math.exp(-0.5 * half_width**2) / math.sqrt(2.0 * math.pi)
    regions = np.array([(A - T) ** j * T * A ** (dimension - 1 - j) for j in range(dimension)])
    log_box = dimension * math.log(2.0 * half_width) + np.logaddexp(log_height, 0.0)
    log_outside = log_n + math.log(regions.sum()) if regions.sum() > 0 else -math.inf
    log_mass = float(np.logaddexp(log_box, log_outside))

    omega = rng.uniform(-half_width, half_width, (count, dimension))
    outside = rng.random(count) < math.exp(log_outside - log_mass)
    for i in np.flatnonzero(outside):
        j = int(rng.choice(dimension, p=regions / regions.sum()))
        for k in range(dimension):
            omega[i, k] = _draw_g1(half_width, "inside" if k < j else "tail" if k == j else "anywhere", rng)
    tensor = torch.from_numpy(omega)
    log_g1 = (-0.5 * tensor.square() - 0.5 * math.log(2.0 * math.pi) + tensor.abs().clamp_min(1.0).log()).sum(1)
    in_box = (tensor.abs() <= half_width).all(1)
    log_density = torch.where(in_box, float(np.logaddexp(log_height, 0.0)), log_n + log_g1) - log_mass
    return tensor, log_density


def _draw_g1(half_width: float, where: str, rng: np.random.Generator) -> float:
    """One draw from g1(u) ∝ e^{-u^2/2} max(1, |u|), conditioned on |u| <= b, |u| > b or nothing."""
    if where == "tail":  # int_x^inf u e^{-u^2/2} du = e^{-x^2/2}
        return float(rng.choice([-1.0, 1.0]) * math.sqrt(half_width**2 - 2.0 * math.log(1.0 - rng.random())))
    core = erf(math.sqrt(0.5))
    flank = 2.0 * math.exp(-0.5) / math.sqrt(2.0 * math.pi)
    while True:
        if rng.random() < core / (core + flank):
            u = float(ndtri(0.5 + core * (rng.random() - 0.5)))
        else:
            u = float(rng.choice([-1.0, 1.0]) * math.sqrt(1.0 - 2.0 * math.log(1.0 - rng.random())))
        if where == "anywhere" or abs(u) <= half_width:
            return u


def _equal_weights(frequencies: Tensor) -> SpectralDesign:
    m = frequencies.shape[0]
    return SpectralDesign(frequencies, torch.full((m,), 1.0 / m, dtype=torch.float64))


def _random_rotation(dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A rotation of the uniform (Haar) law: QR with the signs of R's diagonal."""
    q, r = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    return np.asarray(q * np.sign(np.diag(r)))


def _sobol_frequencies(kernel: Kernel, pairs: int, dimension: int, rng: np.random.Generator) -> Tensor:
    """Scrambled Sobol points (pairs, d) of the spectral law; one extra coordinate drives the radius factor."""
    power = math.ceil(math.log2(max(pairs, 2)))
    points = qmc.Sobol(dimension + 1, rng=rng).random_base2(power)[:pairs]
    points = np.clip(points, 2.0**-40, 1.0 - 2.0**-40)
    scale = kernel.spectral_radius_scale(torch.from_numpy(points[:, -1].copy()))
    return scale[:, None] * torch.from_numpy(ndtri(points[:, :-1]))


def _stretched_log_density(kernel: Kernel, omega: Tensor, stretch: float) -> Tensor:
    """Log density of stretch * omega' for omega' of the spectral law."""
    return kernel.spectral_log_density(omega / stretch) - omega.shape[1] * math.log(stretch)
