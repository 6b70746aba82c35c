r"""KL(exact || local) from both sides by random probes and products with the exact covariance: V9.

With W'W ~ S^-1 the factor of any local model on the same rows, A = W S W' has ones on its diagonal (V1), so

    2 KL(exact || local) = sum log(d_i / d_i^W) + Tr h(A),   h(x) = x - 1 - log x >= 0.

The sum is computed for all rows. Each form g'h(A)g of a standard normal probe g is bracketed by Lanczos steps
(``local_krylov``). Their mean m over t probes brackets the trace: h(A) is positive semi-definite with eigenvalues at
most H, and Chernoff's bound, worst for equal eigenvalues of size min(H, Tr), leaves with probability 1 - e^-x on either
side

    t max(Tr / H, 1) h(m / Tr) <= 2 x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from certgp.guarantees.certificate import Interval
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.guarantees.local_factor import LocalFactor
from certgp.guarantees.local_krylov import Krylov, Spectrum
from certgp.linalg import UNIT_ROUNDOFF

Array = NDArray[np.float64]
DEFAULT_PROBES = 8
_EVENTS = 4  # inequalities that must all hold: both ends of the spectrum, both tails of the trace
_POWERS = 4  # of the local model's covariance, whose largest eigenvalue is wanted
MOST_STEPS = 40
_RATE = 0.9  # steps that leave more than this of what was open are at rounding
_SHARE = 0.01  # of the divergence that Lanczos steps may leave open


@dataclass(frozen=True, eq=False)
class Probes:
    """Random vectors for one bracket, and what is known of W with high probability."""

    vectors: Array  # (N, t), standard normal
    delta: float
    inverse_norm: float  # a bound on |W^-1|^2, the largest eigenvalue of the local model's covariance
    substitution: float  # relative rounding of solves with W

    @property
    def count(self) -> int:
        """t."""
        return int(self.vectors.shape[1])


def draw_probes(factor: LocalFactor, delta: float, count: int, rng: np.random.Generator) -> Probes:
    """Probes for a bracket that fails with probability ``delta`` at most."""
    found = _inverse_norm(factor, delta / _EVENTS, count, rng)
    lost = (factor.sets.shape[1] + 4) * UNIT_ROUNDOFF * factor.norm * math.sqrt(found)
    found = found * (1.0 + lost) ** (4 * _POWERS) if lost < 1e-3 else math.inf
    return Probes(rng.standard_normal((factor.n_rows, count)), delta, found, lost)


def _inverse_norm(factor: LocalFactor, delta: float, count: int, rng: np.random.Generator) -> float:
    """The largest eigenvalue of W^-1 W'^-1, with probability 1 - delta at most this."""
    V = rng.standard_normal((factor.n_rows, count))
    for _ in range(_POWERS):
        V = factor.solve(factor.solve_transposed(V))
    return _largest(float(np.square(V).sum()), count, _POWERS, delta)


def _largest(squares: float, count: int, power: int, delta: float, lost: float = 0.0) -> float:
    r"""The largest eigenvalue L of M >= 0 from sum_j |M^p g_j|^2 over ``count`` standard normal g_j: with u its
    eigenvector, the sum is at least L^2p sum_j (u'g_j)^2, and that is chi-squared with ``count`` degrees of freedom.

    ``lost`` bounds how far rounding moves the root of the sum, in units of L^p.
    """
    root = math.sqrt(float(chi2.ppf(delta, count))) - lost
    return (math.sqrt(squares) / root) ** (1.0 / power) if root > 0.0 else math.inf


def bracket_by_probes(
    local: LocalFactor, factor: LocalFactor, covariance: ExactCovariance, probes: Probes, most_steps: int = MOST_STEPS
) -> Interval:
    """V9: KL(exact || local), with probability 1 - delta, through the factor that the probes were drawn for."""
    krylov = Krylov(factor, covariance, probes.vectors, probes.substitution)
    bracket = ProbeBracket(local, factor, covariance, probes, krylov)
    return bracket.divergence(krylov.run(bracket.is_narrow, most_steps))


class ProbeBracket:
    """The bracket of the divergence that a set of Lanczos steps proves."""

    def __init__(
        self, local: LocalFactor, factor: LocalFactor, covariance: ExactCovariance, probes: Probes, krylov: Krylov
    ) -> None:
        self._local, self._factor, self._covariance, self._probes = local, factor, covariance, probes
        self._krylov = krylov
        self._width = math.inf
        own = local.log_determinant()
        theirs = float(np.log(factor.variances).sum())
        self._known = Interval(own.lower - theirs, own.upper - theirs)  # sum log(d_i / d_i^W)

    def is_narrow(self, spectra: list[Spectrum]) -> bool:
        """Would more steps help little: is what they leave open small against the divergence, or rounding?"""
        forms, before = self._forms(spectra), self._width
        self._width = forms.upper - forms.lower
        if self._width > _RATE * before:
            return True
        ends_known = _excess(self._largest(spectra)) <= _excess(self._smallest())
        return ends_known and self._width <= _SHARE * (max(self._known.lower, 0.0) + max(forms.lower, 0.0))

    def divergence(self, spectra: list[Spectrum]) -> Interval:
        """KL(exact || local)."""
        n, e = self._factor.n_rows, self._covariance.relative
        if not e < 0.5:
            return Interval(0.0, math.inf)
        trace = self._trace(spectra)
        # kernel values are rounded: (1 - e) A <= A~ <= (1 + e) A; and diag(A) is 1 up to the rounding of d_i
        slack = float((self._factor.form_rounding / self._factor.variances).sum()) + 8.0 * n * UNIT_ROUNDOFF
        slack = slack * (1.0 + e) + n * (e - math.log1p(-e))
        slack += 4.0 * n * UNIT_ROUNDOFF * float(np.abs(np.log(self._factor.variances)).sum())
        lower = 0.5 * (self._known.lower + trace.lower - slack)
        return Interval(max(0.0, float(lower)), float(0.5 * (self._known.upper + trace.upper + slack)))

    def _trace(self, spectra: list[Spectrum]) -> Interval:
        """Tr h(A~)."""
        t, x = self._probes.count, math.log(_EVENTS / self._probes.delta)
        largest_value = max(_excess(self._smallest()), _excess(self._largest(spectra)))
        forms = self._forms(spectra)
        return Interval(
            _other_mean(forms.lower, largest_value, 2.0 * x / t, above=False),
            _other_mean(forms.upper, largest_value, 2.0 * x / t, above=True),
        )

    def _forms(self, spectra: list[Spectrum]) -> Interval:
        """The mean of g'h(A~)g over the probes."""
        smallest, largest = self._smallest(), self._krylov.norm
        if smallest <= 0.0:
            return Interval(0.0, math.inf)
        lower = upper = 0.0
        for one in spectra[: self._probes.count]:
            logarithm = one.minus_logarithm(smallest, largest)
            linear = one.size * (float(np.sum(one.first**2 * one.values)) - 1.0)
            moved = one.size * (one.error + 2.0 * one.start * largest)
            lower += logarithm.lower + linear - moved
            upper += logarithm.upper + linear + moved
        return Interval(lower / self._probes.count, upper / self._probes.count)

    def _smallest(self) -> float:
        """Of the eigenvalues of A~ >= (1 - e) s2 W W'."""
        s2 = self._covariance.noise_variance * (1.0 - min(self._covariance.relative, 1.0))
        return s2 / self._probes.inverse_norm

    def _largest(self, spectra: list[Spectrum]) -> float:
        """Of the eigenvalues, with probability 1 - delta / 4: k steps know A^p g for p < k."""
        own = spectra[: self._probes.count]
        power = min((len(one.values) for one in own if one.left > 0.0), default=9) - 1
        if power < 1:
            return self._krylov.norm
        squares = sum(one.size * float(np.sum(one.first**2 * one.values ** (2 * power))) for one in own)
        lost = max(power * one.error + one.start for one in own) * math.sqrt(sum(one.size for one in own))
        found = _largest(squares, self._probes.count, power, self._probes.delta / _EVENTS, lost)
        return min(max(found, 1.0), self._krylov.norm)


def _other_mean(found: float, largest: float, allowed: float, above: bool) -> float:
    """The trace T furthest from a mean that was found, above or below it, with max(T / H, 1) h(found / T) <= allowed;
    the left side grows with the distance.
    """
    if not (found > 0.0 and math.isfinite(found) and math.isfinite(largest)):
        return math.inf if above else 0.0
    near, far = found, found
    while max(far / largest, 1.0) * _excess(found / far) <= allowed:
        far = 2.0 * far if above else 0.5 * far
    while abs(far - near) > 1e-6 * near:
        middle = 0.5 * (near + far)
        inside = max(middle / largest, 1.0) * _excess(found / middle) <= allowed
        near, far = (middle, far) if inside else (near, middle)
    return far


def _excess(value: float) -> float:
    """h(x) = x - 1 - log x."""
    if math.isinf(value):
        return math.inf
    return value - 1.0 - math.log(value) if value > 0.0 else math.inf
