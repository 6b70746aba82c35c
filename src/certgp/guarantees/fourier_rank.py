"""How many Fourier features suffice: the paper's Theorem 2 with Avron's constants, and a form that looks at the data.

Avron et al. (2017), Lemma 8: for Delta <= 1/2, |K| >= s2, a density tau~ >= tau above the ridge leverage function with
mass S and s >= (8/3) Delta^-2 S ln(16 d / rho) frequencies drawn from tau~ / S and weighed by p / q,

    (1 - Delta) S1 <= Z Z* + s2 I <= (1 + Delta) S1    with probability 1 - rho,

d = Tr((K + s2 I)^-1 K). A complex feature is a cos/sin pair, so the rank is 2 s. The frequencies must be independent
draws of that very density: each method is about one law, and only "plain" is about one that ``FourierGP`` draws from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from certgp.checks import check_choice, check_count, check_fraction, check_positive, check_positives, numbers
from certgp.errors import InvalidInputError, VacuousBoundWarning, warn_user
from certgp.guarantees.dense import spectral_error_bound
from certgp.guarantees.reference_maps import ReferenceMaps
from certgp.guarantees.rounding import gap_slack
from certgp.kernels import Gaussian, Kernel, kernel_from_name
from certgp.kernels.parameters import Numbers

FOURIER_METHODS = ("data", "plain", "literal")
_COVERED_LAWS = {
    "data": "independent frequencies of the reference's leverage density, from which no sampling= of FourierGP draws",
    "plain": "sampling='iid' at these hyper-parameters",
    "literal": "independent frequencies of the modified density of Avron et al., which sampling='modified' follows up "
    "to a constant that was inferred",
}
_SAMPLE_ROWS = 4_000
_NORM_ROWS = 1_000
_CHUNK = 8_192


@dataclass(frozen=True)
class FourierRank:
    """A sufficient rank and what it rests on."""

    rank: int
    n_rows: int
    method: str
    mass: float  # S: the integral of the bound on the leverage function
    effective_dimension: float  # bound on Tr((K + s2 I)^-1 K)
    spectral_error: float  # Delta

    @property
    def covers(self) -> str:
        """The law of the frequencies that the statement is about. It says nothing of others, such as the default
        ``sampling="auto"``; ``certify()`` is the proof for the model at hand.
        """
        return _COVERED_LAWS[self.method]

    @property
    def vacuous(self) -> bool:
        """Is the rank larger than the number of rows, so that an exact GP would be cheaper?"""
        return self.rank > self.n_rows

    def __str__(self) -> str:
        note = f", vacuous: more than the {self.n_rows} rows, an exact GP costs less" if self.vacuous else ""
        return f"rank {self.rank} ({self.method}{note}); covers {self.covers}"


def fourier_rank(
    *,
    X: ArrayLike,
    length_scale: Any,
    noise_variance: float,
    epsilon: float,
    delta: float = 0.05,
    signal_variance: float = 1.0,
    kernel: str = "gaussian",
    method: str = "data",
    reference_rank: int = 400,
) -> int:
    """A rank of Fourier features for which KL(exact || low rank) <= epsilon N is proven with probability 1 - delta over
    independent frequencies of the law that ``method`` is about.

    That law matters. The default "data" is about the leverage density of a reference on all rows, which no ``sampling``
    of ``FourierGP`` draws from: not "auto", and not "leverage", which resamples a pool by leverages on a part of the
    rows. There the number is a guide to the order of magnitude at best; with another law the divergence at this rank
    can be thousands of times epsilon N. "plain" covers ``FourierGP(rank, sampling="iid", cap_rank=False,
    optimize=False, ...)`` with these hyper-parameters, and nothing else. For the model at hand, however its frequencies
    were drawn, ``certify()`` is the proof.

    The arguments are those of ``fourier_rank_bound``, which returns how the number came about. A rank above N comes
    with a ``VacuousBoundWarning``.
    """
    bound = fourier_rank_bound(
        X=X,
        length_scale=length_scale,
        noise_variance=noise_variance,
        epsilon=epsilon,
        delta=delta,
        signal_variance=signal_variance,
        kernel=kernel,
        method=method,
        reference_rank=reference_rank,
    )
    if bound.vacuous:
        warn_user(f"this bound is vacuous: {bound}", VacuousBoundWarning)
    return bound.rank


def fourier_rank_bound(
    *,
    X: ArrayLike,
    length_scale: Any,
    noise_variance: float,
    epsilon: float,
    delta: float = 0.05,
    signal_variance: float = 1.0,
    kernel: str = "gaussian",
    method: str = "data",
    reference_rank: int = 400,
) -> FourierRank:
    r"""Sufficient rank for rows X (N, D).

    Parameters
    ----------
    length_scale : float or one per column
    noise_variance, signal_variance : in one unit
    epsilon : nats per row
    delta : probability of failure
    method : "data" is for frequencies drawn from the density p(w) z(w)*(Q + s2 I)^-1 z(w) / S of a reference Q of
        ``reference_rank`` features dominated by the kernel (no ``sampling`` of ``FourierGP`` does); "plain" is for
        frequencies drawn from the spectral law (``sampling="iid"``), S = N / s2; "literal" is Theorem 2, for Avron's
        density: S = (248 R)^D ln(n)^(D/2) + (200 ln n)^(2D) with n = N sf2 / s2, R = max(1, radius in units of 2 pi l),
        KL <= gamma N with gamma = 2 Delta (so Delta = epsilon / 2) and d <= N

    Notes
    -----
    "data" and "plain" use KL <= N/2 [Delta / (1 - Delta) + ln(1 - Delta)], quadratic in Delta; "data" also the form
    KL <= .614 S d / (s delta') at Delta = 1/2, free of N, where that needs fewer.  [theory 5.1, 5.2]
    """
    rows = _rows(X)
    n, dimension = rows.shape
    check_choice("method", method, FOURIER_METHODS)
    scales = check_positives("length_scale", length_scale, dimension, f"X has {dimension} column(s)")
    ratio = check_positive("noise_variance", noise_variance) / check_positive("signal_variance", signal_variance)
    eps, rho = check_positive("epsilon", epsilon), check_fraction("delta", delta)
    m = check_count("reference_rank", reference_rank)
    _check_norm(rows / scales, kernel, ratio)
    if method == "literal":
        return _literal(rows / scales, kernel, ratio, eps, rho)
    error = _spectral_error(eps)
    if method == "plain":
        return _rank(n, "plain", n / ratio, min(float(n), n / ratio), error, rho)
    return _data_dependent(rows, scales, kernel, ratio, eps, rho, m)


def _check_norm(scaled: NDArray[np.float64], kernel: str, ratio: float) -> None:
    """The lemma needs |K| >= s2. The diagonal shows it for s2 <= sf2, a principal submatrix for larger noise."""
    unit = _kernel(kernel, 1.0)
    if ratio <= 1.0:
        return
    part = torch.from_numpy(scaled[np.linspace(0, len(scaled) - 1, min(len(scaled), _NORM_ROWS)).astype(int)])
    with torch.no_grad():
        norm = float(torch.linalg.eigvalsh(unit(part, part))[-1])
    if norm < ratio:
        raise InvalidInputError(
            f"noise_variance is {ratio:.3g} times signal_variance, and the theorem needs a kernel matrix of norm at "
            f"least noise_variance (found {norm:.3g} times signal_variance); check the two variances"
        )


def _kernel(name: str, length_scale: Numbers) -> Kernel:
    """A kernel by its name, if frequencies can be drawn for it."""
    kernel = kernel_from_name(name)()
    kernel.check_spectral_law()
    return kernel.replace(length_scale=length_scale)


def _literal(scaled: NDArray[np.float64], kernel: str, ratio: float, eps: float, rho: float) -> FourierRank:
    if kernel_from_name(kernel) is not Gaussian:
        raise InvalidInputError(f"Theorem 2 is about the Gaussian kernel, found kernel={kernel!r}; use method='data'")
    n, D = scaled.shape
    log_n = math.log(n / ratio)
    if log_n < 0.2 * (D - 1):
        raise InvalidInputError(
            f"Theorem 2 needs D <= 5 ln(N sf2 / s2) + 1 = {5 * log_n + 1:.1f}, found {D} columns; use method='data'"
        )
    radius = max(1.0, 0.5 * float(np.ptp(scaled, axis=0).max()) / (2.0 * math.pi))
    mass = (248.0 * radius) ** D * log_n ** (0.5 * D) + (200.0 * log_n) ** (2.0 * D)
    return _rank(n, "literal", mass, float(n), min(0.5 * eps, 0.5), rho)


def _data_dependent(
    rows: NDArray[np.float64], scales: NDArray[np.float64], kernel: str, ratio: float, eps: float, rho: float, m: int
) -> FourierRank:
    r"""S = Tr((Q + s2 I)^-1 K) <= Tr((Q + s2 I)^-1 Q) + Tr(K - Q) / s2 for a reference Q <= K."""
    n = rows.shape[0]
    X = torch.from_numpy(rows)
    order = torch.from_numpy(np.random.default_rng(0).permutation(n))
    reference = ReferenceMaps(_kernel(kernel, scales), X[order[:_SAMPLE_ROWS]], X[order[-_SAMPLE_ROWS:]], m).of_rank(m)
    with torch.no_grad():
        parts = [reference(X[i : i + _CHUNK]) for i in range(0, n, _CHUNK)]
    gram = torch.stack([part.mT @ part for part in parts]).sum(0)
    values = torch.linalg.eigvalsh(gram).clamp_min(0.0)
    gap = max(n - float(gram.diagonal().sum()), 0.0) + gap_slack(n, float(n), reference.rounding())
    mass = float((values / (values + ratio)).sum()) + gap / ratio
    mass = min(mass, n / ratio)
    plain = _rank(n, "data", mass, min(mass, float(n)), _spectral_error(eps), rho)
    return min(plain, _free_of_n(n, mass, eps, rho), key=lambda bound: bound.rank)


def _free_of_n(n: int, mass: float, eps: float, rho: float) -> FourierRank:
    """KL <= .614 S d / (s delta') once Delta = 1/2 holds; the failure probability is shared between the two."""
    base = _rank(n, "data", mass, min(mass, float(n)), 0.5, 0.5 * rho)
    # kappa(1/2) / 4 = [Delta / (1 - Delta) + ln(1 - Delta)] / (2 Delta^2) at Delta = 1/2
    constant = spectral_error_bound(0.5, 1) / 0.5**2
    needed = 2 * math.ceil(constant * mass * base.effective_dimension / (0.5 * rho * eps * n))
    return FourierRank(max(base.rank, needed), n, "data", mass, base.effective_dimension, 0.5)


def _rank(n: int, method: str, mass: float, dimension: float, error: float, rho: float) -> FourierRank:
    count = math.ceil(8.0 / 3.0 * error**-2 * mass * math.log(max(16.0 * dimension / rho, math.e)))
    return FourierRank(2 * count, n, method, mass, dimension, error)


def _spectral_error(eps: float) -> float:
    """The largest Delta <= 1/2 with KL <= eps N."""
    if spectral_error_bound(0.5, 1) <= eps:
        return 0.5
    return float(brentq(lambda error: spectral_error_bound(error, 1) - eps, 0.0, 0.5, xtol=1e-15))


def _rows(X: ArrayLike) -> NDArray[np.float64]:
    rows = numbers("X", X, "be a table of finite numbers")
    if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
        raise InvalidInputError(f"X must be a table (rows, columns) of finite numbers, found shape {rows.shape}")
    return rows
