"""How many eigenfunctions suffice, before any data are seen: the paper's Theorem 3 with every constant written out.

Rows are independent draws of the input measure; what is random is their trace gap Tr(K - Sigma) = sum_i g(x_i) with
0 <= g <= B = sf2, E g = Lambda (the sum of the dropped eigenvalues) and Var g <= Lambda (B - Lambda).  [theory 6]
Lambda is known in closed form for the Gaussian kernel and bounded from above for Matern kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betainc, comb

from certgp.checks import check_choice, check_count, check_fraction, check_positive, check_positives, numbers
from certgp.errors import InvalidInputError
from certgp.features import box_indices, eigenvalue_tail, optimal_indices, total_degree_indices
from certgp.features.index_sets import check_ratios
from certgp.features.mercer import INDEX_SETS
from certgp.guarantees.dominated import sharpened_trace_bound
from certgp.guarantees.operator_spectrum import matern12_eigenvalues, ritz_eigenvalues
from certgp.guarantees.product_spectrum import tail_bounds
from certgp.kernels import Gaussian, kernel_from_name

Array = NDArray[np.float64]
Scales = float | Sequence[float] | Array
RANK_METHODS = ("sharp", "best", "paper", "expected")
_LARGEST_RANK = 1 << 20
_MATERN12_EIGENVALUES = 1 << 15
_LARGEST_MATERN_RANK = 1 << 16  # in several dimensions
_FEWEST_INDICES, _SPARE_INDICES = 1 << 9, 2  # the largest elements need not be those of lowest frequency
_ROUNDING = 1e-12  # of 1 - (sum of eigenvalues), which cancels


def mercer_tail(
    *,
    length_scale: Scales,
    input_scale: Scales,
    rank: int,
    signal_variance: float = 1.0,
    index_set: str = "optimal",
    kernel: str = "gaussian",
) -> float:
    """Sum of the eigenvalues that ``rank`` features drop: of the Gaussian kernel for x_j ~ N(0, input_scale_j^2), or an
    upper bound on that of a Matern kernel for x_j uniform with the standard deviation input_scale_j.

    For the Gaussian kernel every term is positive, so tails far below rounding keep their digits. Matern kernels have
    ``index_set="optimal"`` only: the ``rank`` largest eigenvalues.
    """
    sf2, r = check_positive("signal_variance", signal_variance), check_count("rank", rank)
    check_choice("index_set", index_set, INDEX_SETS)
    if kernel_from_name(kernel) is not Gaussian:
        if index_set != "optimal":
            raise InvalidInputError(
                f"index_set={index_set!r} is about products of eigenfunctions, which the {kernel} kernel does not "
                "have; use index_set='optimal'"
            )
        tail, largest = _tail_function(kernel, length_scale, input_scale)
        if r > largest:
            raise InvalidInputError(f"rank must be at most {largest} for the {kernel} kernel, found {r}")
        return sf2 * tail(r)
    ratios = _ratios(length_scale, input_scale)
    if index_set == "optimal":
        return sf2 * _optimal_tail(ratios, r)
    indices = total_degree_indices(len(ratios), r) if index_set == "total_degree" else box_indices(len(ratios), r)
    return sf2 * eigenvalue_tail(ratios, indices)


def mercer_rank(
    *,
    length_scale: Scales,
    input_scale: Scales,
    n: int,
    noise_variance: float,
    epsilon: float,
    delta: float = 0.05,
    signal_variance: float = 1.0,
    method: str = "sharp",
    kernel: str = "gaussian",
) -> int:
    """Smallest rank for which KL(exact || low rank) <= epsilon n is proven with probability 1 - delta over the inputs.

    Parameters
    ----------
    length_scale, input_scale : float or one per dimension; ``input_scale`` is the standard deviation of the inputs
    n : number of rows, independent draws of the input measure
    noise_variance, signal_variance : in one unit
    epsilon : nats per row
    delta : probability of failure
    method : "sharp" (best of Chebyshev, Cantelli, Bernstein and Markov, and KL <= 1/2 (t - ln(1 + t))), "best" (the
        same with KL <= t / 2), "paper" (Chebyshev and t / 2) or "expected" (no probability: E Tr / (2 s2) <= epsilon n)
    kernel : "gaussian" under normal inputs; "matern12", "matern32" or "matern52" under uniform inputs of the same
        standard deviation. Their eigenvalue tail is bounded from above: in one dimension by the closed form (Matern
        1/2) or ``ritz_eigenvalues``, in several by theorem M2 (``product_spectrum``)

    Notes
    -----
    Matern promises are about the ``rank`` leading eigenfunctions, and so about the eigendecomposition of K on the rows
    too, whose trace gap is no larger. A rank of n or more says nothing: n eigenvectors of K give K itself.

    The theorem speaks of *the* input measure. With a scale estimated from the same rows it is a heuristic: follow it
    with ``certify``.
    """
    check_choice("method", method, RANK_METHODS)
    rows, s2 = check_count("n", n), check_positive("noise_variance", noise_variance)
    eps, sf2 = check_positive("epsilon", epsilon), check_positive("signal_variance", signal_variance)
    failure = check_fraction("delta", delta)
    tail, largest = _tail_function(kernel, length_scale, input_scale)

    def holds(rank: int) -> bool:
        gap = rows * sf2 * trace_quantile(tail(rank), rows, failure, method)
        bound = sharpened_trace_bound(gap, s2) if method == "sharp" else 0.5 * gap / s2
        return bound <= eps * rows

    return _find_smallest(holds, largest)


def trace_quantile(tail: float, n: int, delta: float, method: str) -> float:
    r"""Upper (1 - delta) quantile bound on Tr(K - Sigma) / (n sf2), from the relative tail L = Lambda / sf2.

        Chebyshev L + sqrt(L / (n delta))                      Cantelli L + sqrt(L (1 - L) (1 - delta) / (n delta))
        Bernstein L + sqrt(2 L (1 - L) a / n) + a / (3 n)      Markov L / delta,       a = ln(1 / delta)

    Each is a deterministic number, so the smallest of them costs no union bound.
    """
    if method == "expected":
        return tail
    chebyshev = tail + math.sqrt(tail / (n * delta))
    if method == "paper":
        return chebyshev
    spread, a = tail * (1.0 - tail), math.log(1.0 / delta)
    cantelli = tail + math.sqrt(spread * (1.0 - delta) / (n * delta))
    bernstein = tail + math.sqrt(2.0 * spread * a / n) + a / (3.0 * n)
    return min(chebyshev, cantelli, bernstein, tail / delta, 1.0)


def _tail_function(kernel: str, length_scale: Scales, input_scale: Scales) -> tuple[Callable[[int], float], int]:
    """rank -> (a bound on) the relative tail of a kernel's eigenvalues, and the largest rank it is known for."""
    family = kernel_from_name(kernel)
    if family is Gaussian:
        return _tail_by_rank(_ratios(length_scale, input_scale)), _LARGEST_RANK
    if family.spectral_degrees is None:
        raise InvalidInputError(
            f"the eigenvalues of the {kernel} kernel are not known; use a Gaussian or Matern kernel"
        )
    scales, spread = _both_scales(length_scale, input_scale)
    if len(scales) > 1:
        # Uniform(-a, a) has standard deviation a / sqrt(3)
        return _matern_tail(family.spectral_degrees, scales / (2.0 * math.sqrt(3.0) * spread)), _LARGEST_MATERN_RANK
    half_width = math.sqrt(3.0) * float(spread[0])
    if kernel == "matern12":
        values = matern12_eigenvalues(float(scales[0]), half_width, _MATERN12_EIGENVALUES)
    else:
        values = ritz_eigenvalues(family(float(scales[0])), half_width)
    left = 1.0 - np.concatenate([[0.0], np.cumsum(values)])
    tails = np.minimum(np.maximum(left, 0.0) + _ROUNDING, 1.0)
    return lambda rank: float(tails[rank]), len(values)


def _matern_tail(degrees: float, ratios: Array) -> Callable[[int], float]:
    """rank -> bound on the relative tail; one list of indices per power of two serves all ranks below it."""
    known: dict[int, Array] = {}

    def tail(rank: int) -> float:
        size = _SPARE_INDICES * max(1 << (rank - 1).bit_length(), _FEWEST_INDICES)
        if size not in known:
            known[size] = tail_bounds(int(degrees), ratios, size)
        return float(known[size][rank])

    return tail


def _find_smallest(holds: Callable[[int], bool], largest: int) -> int:
    """Smallest rank of a property that stays true once it is, by doubling and bisection up to the largest."""
    low, high = 0, 1
    while not holds(high):
        if high == largest:
            raise InvalidInputError(
                f"no rank up to {largest} is proven to suffice, and no larger one is tried; raise epsilon or "
                "noise_variance, or use longer length-scales"
            )
        low, high = high, min(2 * high, largest)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _tail_by_rank(ratios: Array) -> Callable[[int], float]:
    """rank -> relative tail; where dimensions differ, one enumeration per power of two serves all ranks below it."""
    if _are_alike(ratios):
        return lambda rank: _optimal_tail(ratios, rank)
    known: dict[int, Array] = {}

    def tail(rank: int) -> float:
        size = 1 << (rank - 1).bit_length()
        if size not in known:
            indices = optimal_indices(ratios, size)
            values = np.exp(np.log1p(-ratios).sum() + indices @ np.log(ratios))
            # tail(r) = tail(size) + the eigenvalues between: all terms positive, smallest first
            known[size] = np.cumsum(np.append(eigenvalue_tail(ratios, indices), values[::-1]))[::-1]
        return float(known[size][rank])

    return tail


def _are_alike(ratios: Array) -> bool:
    return bool(np.ptp(ratios) <= 1e-12 * ratios.max())


def _optimal_tail(ratios: Array, rank: int) -> float:
    """Relative tail beyond the ``rank`` largest eigenvalues; a closed form where all dimensions are alike."""
    if _are_alike(ratios):
        return _isotropic_tail(float(ratios[0]), len(ratios), rank)
    return eigenvalue_tail(ratios, optimal_indices(ratios, rank))


def _isotropic_tail(q: float, dimension: int, rank: int) -> float:
    r"""Levels of total degree k hold C(k + d - 1, d - 1) equal eigenvalues (1 - q)^d q^k, a negative binomial law.

    Its tail from level m on is the regularised incomplete beta function I_q(m, d); an unfinished level adds the rest.
    """
    level = 0
    while comb(level + dimension, dimension, exact=True) <= rank:
        level += 1
    missing = int(comb(level + dimension, dimension, exact=True)) - rank  # of level ``level``, which is not complete
    return float(betainc(level + 1, dimension, q)) + missing * math.exp(
        dimension * math.log1p(-q) + level * math.log(q)
    )


def _ratios(length_scale: Scales, input_scale: Scales) -> Array:
    """q_j, the ratio of successive eigenvalues, per dimension."""
    scales, spread = _both_scales(length_scale, input_scale)
    return check_ratios(Gaussian(scales).mercer(torch.from_numpy(spread)).ratio.numpy())


def _both_scales(length_scale: Scales, input_scale: Scales) -> tuple[Array, Array]:
    """Both scales with one number per dimension (D,), (D,)."""
    scales, spread = _scales("length_scale", length_scale), _scales("input_scale", input_scale)
    d = max(len(scales), len(spread))
    where = f"there are {d} dimensions"
    return check_positives("length_scale", scales, d, where), check_positives("input_scale", spread, d, where)


def _scales(name: str, value: Scales) -> Array:
    given = np.atleast_1d(numbers(name, value, "be positive and finite"))
    return check_positives(name, given, max(given.size, 1), "a vector is needed")
