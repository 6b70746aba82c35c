"""Tightening a reference certificate with products by the exact kernel, at a stated confidence.  [theory 4.2]"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.errors import InvalidInputError
from certgp.gp.kernel_products import KernelMatrix
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.reference import Reference

_EVENTS = 5  # inequalities that must all hold: two norms from above, one from below, one trace from both sides
DEFAULT_PROBES = 64


@torch.no_grad()
def tighten(
    certificate: Certificate,
    reference: Reference,
    rows: Chunk,
    delta: float,
    probes: int,
    rng: np.random.Generator,
) -> Certificate:
    r"""A narrower interval for KL(P || Q) that holds with probability 1 - delta over the probes.

    With E = K - Psi Psi', A = S2^-1/2 E S2^-1/2 (S2 the model's covariance) and B = S_M^-1/2 E S_M^-1/2,

        KL(P || Q) = KL(M || Q) + 1/2 [ Tr(A - B) + sum_i (b_i - ln(1 + b_i)) ],   b_i >= 0 the eigenvalues of B
        |B|_F^2 / (2 (1 + |B|_F)) <= sum_i (b_i - ln(1 + b_i)) <= |B|_F^2 / 2

    Tr(A - B), |A - B|_F and |B|_F are estimated with the same standard normal probes g: means of g'(A - B)g,
    |(A - B)g|^2 and |Bg|^2, from one streamed product of K with 2 x ``probes`` vectors. See ``_trace_interval``. Where
    this narrows neither end, the certificate is returned as it was, certain. Where rows have weights, K, Psi and the
    model's features are Q K Q, Q Psi and Q Phi.
    """
    x = math.log(_EVENTS / delta)
    if probes <= 4.0 * x:
        raise InvalidInputError(f"probes must exceed {4.0 * x:.0f} for a confidence of {1.0 - delta:g}, found {probes}")
    problem = reference.problem
    sf2, s2, root = problem.signal_variance, problem.noise_variance, math.sqrt(problem.signal_variance)
    seen = problem.model.kernel_inputs(rows.X)
    own = root if rows.weight is None else root * rows.weight.sqrt()[:, None]
    Psi, Phi = own * reference.features(seen), own * problem.model(rows.X)
    half_model, half_reference = _InverseRoot(Phi, s2), _InverseRoot(Psi, s2)
    G = torch.from_numpy(rng.standard_normal((len(rows.y), probes)))
    V = torch.cat([half_model(G), half_reference(G)], dim=1)
    matrix = KernelMatrix(problem.kernel.with_signal_variance(sf2), seen, rows.weight)
    EV = matrix.multiply(V) - Psi @ (Psi.mT @ V)
    AG, BG = half_model(EV[:, :probes]), half_reference(EV[:, probes:])
    difference = AG - BG
    trace = _trace_interval(float((G * difference).sum()) / probes, _frobenius(difference, x)[1], probes, x)
    low, high = _frobenius(BG, x)
    largest = min(high, reference.trace_gap / s2)  # |B|_2 <= |B|_F, and <= Tr(E) / s2 surely
    curvature = Interval(0.5 * low**2 / (1.0 + largest), 0.5 * high**2)
    centre, rounding = certificate.evidence["kl_to_reference"], certificate.evidence["rounding_slack"]
    lower = centre + 0.5 * (trace.lower + curvature.lower) - rounding
    upper = centre + 0.5 * (trace.upper + curvature.upper) + rounding
    narrowed = Interval(max(lower, certificate.kl.lower), min(upper, certificate.kl.upper))
    if narrowed == certificate.kl:  # what is certain is as narrow, and stays certain
        return certificate
    return replace(
        certificate,
        kl=narrowed,
        theorem="R2 (reference model, statistical), " + certificate.theorem.split(", ", 1)[1],
        evidence={**certificate.evidence, "probes": probes, "half_width": 0.5 * (upper - lower)},
        confidence=1.0 - delta,
    )


class _InverseRoot:
    """S^-1/2 V for S = F F' + s2 I: V / s + F U diag((1 / sqrt(lam + s2) - 1 / s) / lam) U' F'V, F'F = U lam U'."""

    def __init__(self, features: Tensor, noise: float) -> None:
        values, vectors = torch.linalg.eigh(features.mT @ features)
        values = values.clamp_min(0.0)
        self._features, self._scale = features, noise**-0.5
        root = (values + noise).sqrt()
        # (1 / root - 1 / s) / lam = -1 / (s root (root + s)) without the cancellation at small lam
        self._middle = (vectors * (-1.0 / (noise**0.5 * root * (root + noise**0.5)))) @ vectors.mT

    def __call__(self, V: Tensor) -> Tensor:
        result: Tensor = self._scale * V + self._features @ (self._middle @ (self._features.mT @ V))
        return result


def _frobenius(products: Tensor, x: float) -> tuple[float, float]:
    r"""Bounds on |A|_F, each failing with probability e^-x, from t columns A g_j: est = mean |A g_j|^2.

    Laurent and Massart (2000) for the quadratic form of A^2, whose largest eigenvalue and Frobenius norm are at most
    |A|_F^2 =: F:  est >= F (1 - 2 sqrt(x / t))  and  est <= F (1 + 2 sqrt(x / t) + 2 x / t).
    """
    t = products.shape[1]
    estimate = float(products.square().sum()) / t
    spread = 2.0 * math.sqrt(x / t)
    return math.sqrt(estimate / (1.0 + spread + 2.0 * x / t)), math.sqrt(estimate / (1.0 - spread))


def _trace_interval(estimate: float, frobenius: float, t: int, x: float) -> Interval:
    r"""Tr A for a symmetric A of any sign, from the mean of t forms g'Ag; each side fails with probability e^-x.

    ln E exp(u a (g^2 - 1)) <= u^2 a^2 / (1 - 2 u |a|), so Laurent and Massart's tail holds for signed eigenvalues too:
    |estimate - Tr A| <= 2 |A|_F sqrt(x / t) + 2 |A|_2 x / t, and |A|_2 <= |A|_F.
    """
    half = 2.0 * frobenius * (math.sqrt(x / t) + x / t)
    return Interval(estimate - half, estimate + half)
