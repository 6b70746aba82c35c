"""Dense oracles for a few thousand rows: the KL divergence itself and the three bounds of the paper's Proposition 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from certgp.checks import check_positive, numbers
from certgp.errors import InvalidInputError
from certgp.guarantees.scalars import log_excess

Array = NDArray[np.float64]


def gaussian_kl(
    cov1: ArrayLike, cov2: ArrayLike, mean1: ArrayLike | None = None, mean2: ArrayLike | None = None
) -> float:
    r"""KL(N(mean1, cov1) || N(mean2, cov2)) for positive definite matrices (N, N), O(N^3).

    With e_i the eigenvalues of S2^-1/2 (S1 - S2) S2^-1/2:

        KL = 1/2 [ sum_i (e_i - ln(1 + e_i)) + (m1 - m2)' S2^-1 (m1 - m2) ]

    The textbook formula subtracts numbers of size N and bottoms out near 1e-16 N; here every term is non-negative.
    """
    S1, S2 = _square("cov1", cov1), _square("cov2", cov2)
    if S1.shape != S2.shape:
        raise InvalidInputError(f"cov1 is {S1.shape} but cov2 is {S2.shape}; they must have one shape")
    e = _relative_difference(S1, S2)
    shift = _mean("mean1", mean1, len(S1)) - _mean("mean2", mean2, len(S1))
    distance = float(shift @ cho_solve(cho_factor(S2), shift)) if shift.any() else 0.0
    return 0.5 * (float(log_excess(e).sum()) + distance)


@dataclass(frozen=True)
class Proposition1:
    """The divergence, the smallest valid gammas and the bounds of Proposition 1, with two sharper forms."""

    kl: float  # KL(exact || low rank)
    gamma: float  # smallest g >= 0 with (1 + g) S1 >= S2, for bounds (1) and (3)
    gamma_two_sided: float  # smallest g that also has (1 + g) S2 >= S1, for bound (2)
    bound1: float  # 1/2 [ Tr(S2^-1 S1) - (1 - g) N ]
    bound2: float  # g N
    bound3: float  # Tr(K - (1 - g) Sigma + g s2 I) / (2 s2)
    bound1_log: float  # 1/2 [ Tr(S2^-1 S1) - N + N ln(1 + g) ], never above bound1
    bound2_quadratic: float  # N/2 [ D / (1 - D) + ln(1 - D) ], D the spectral error; infinite where D >= 1


def proposition1(K1: ArrayLike, K2: ArrayLike, noise_variance: float) -> Proposition1:
    r"""The paper's Proposition 1 for kernel matrices K1 (exact) and K2 (low rank), S_i = K_i + s2 I, dense O(N^3).

    All bounds follow from the eigenvalues 1 + e_i of S2^-1 S1:  [theory 3.1, 3.4]

        g1 = max(0, lmax(S1^-1 S2) - 1) = max(0, -e_min / (1 + e_min)),   g2 = max(g1, e_max),   D = max |e / (1 + e)|
    """
    K, Sigma = _square("K1", K1), _square("K2", K2)
    if K.shape != Sigma.shape:
        raise InvalidInputError(f"K1 is {K.shape} but K2 is {Sigma.shape}; they must have one shape")
    s2, n = check_positive("noise_variance", noise_variance), len(K)
    e = _relative_difference(K + s2 * np.eye(n), Sigma + s2 * np.eye(n), difference=K - Sigma)
    one_sided = max(0.0, float(-e.min() / (1.0 + e.min())))
    two_sided = max(one_sided, float(e.max()))
    trace = float(e.sum())  # Tr(S2^-1 S1) - N
    # D / (1 - D) for D = max |e / (1 + e)|, written in e itself: 1 - D would cancel where S1 is many times S2
    excess = math.inf if e.min() <= -0.5 else max(float(e.max()), float((-e / (1.0 + 2.0 * e)).max()))
    shifted = np.trace(K) - (1.0 - one_sided) * np.trace(Sigma) + one_sided * s2 * n
    return Proposition1(
        kl=0.5 * float(log_excess(e).sum()),
        gamma=one_sided,
        gamma_two_sided=two_sided,
        bound1=0.5 * (trace + one_sided * n),
        bound2=two_sided * n,
        bound3=float(shifted) / (2.0 * s2),
        bound1_log=0.5 * (trace + n * math.log1p(one_sided)),
        bound2_quadratic=_quadratic_bound(excess, n),
    )


def spectral_error_bound(spectral_error: float, n: int) -> float:
    r"""KL <= N/2 [ D / (1 - D) + ln(1 - D) ] where (1 - D) S1 <= S2 <= (1 + D) S1: quadratic in D.  [theory 3.4]

    With x = D / (1 - D) the bracket is x - ln(1 + x).
    """
    return _quadratic_bound(math.inf if spectral_error >= 1.0 else spectral_error / (1.0 - spectral_error), n)


def _quadratic_bound(excess: float, n: int) -> float:
    """N/2 (x - ln(1 + x))."""
    return math.inf if math.isinf(excess) else 0.5 * n * float(log_excess(excess))


def _relative_difference(S1: Array, S2: Array, difference: Array | None = None) -> Array:
    """Eigenvalues e_i > -1 of S2^-1/2 (S1 - S2) S2^-1/2."""
    try:
        e = eigh(S1 - S2 if difference is None else difference, S2, eigvals_only=True)
    except LinAlgError as error:
        raise InvalidInputError(
            "the second covariance is not positive definite in floating point; raise the noise variance"
        ) from error
    if e.min() <= -1.0:
        raise InvalidInputError(
            "the first covariance is not positive definite in floating point; raise the noise variance"
        )
    return np.asarray(e)


def _square(name: str, matrix: ArrayLike) -> Array:
    values = numbers(name, matrix, "be a square matrix of finite numbers")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInputError(f"{name} must be a square matrix of finite numbers, found shape {values.shape}")
    if not np.allclose(values, values.T, rtol=1e-8, atol=1e-12 * np.abs(values).max()):
        raise InvalidInputError(f"{name} must be symmetric; pass (M + M.T) / 2")
    return values


def _mean(name: str, mean: ArrayLike | None, n: int) -> Array:
    if mean is None:
        return np.zeros(n)
    values = numbers(name, mean, f"be a vector of {n} numbers")
    if values.shape != (n,) or not np.isfinite(values).all():
        raise InvalidInputError(f"{name} must be a vector of {n} finite numbers, found shape {values.shape}")
    return values
