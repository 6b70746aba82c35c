"""Statements about single predictions: bounds through a map, a reference or the exact system, in the user's units."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines.local import default_chunk_rows
from certgp.errors import NotCertifiableError
from certgp.features import FeatureMap
from certgp.gp import LowRankProcess, Statistics
from certgp.guarantees.certificate import Certificate
from certgp.guarantees.exact_solve import AT_ROUNDING, OUT_OF_PRODUCTS, SOLVED, CostEstimate, ExactSystem
from certgp.guarantees.pointwise import PointwiseBounds, PredictionBounds
from certgp.guarantees.predictive import expected_predictive_kl
from certgp.guarantees.reference import Reference
from certgp.guarantees.subject import Subject

Confirm = Callable[[CostEstimate], bool]
Rows = NDArray[np.floating]
_MOST_KERNEL_VALUES = 2 * 10**9
_REMEDIES = {  # by how conjugate gradients ended, after so many products
    SOLVED: "conjugate gradients were solved to it, the rest is rounding; raise tol",
    OUT_OF_PRODUCTS: "conjugate gradients ran out of products ({}); raise max_reference_rank or tol",
    AT_ROUNDING: "conjugate gradients ended at the rounding of float64 after {} products; raise tol or noise_variance",
}


def bound_through_map(
    subject: Subject, X: Rows, features: FeatureMap, unit_stats: Statistics, map_rounding: float
) -> PredictionBounds:
    """Bounds on the exact predictions at X through a map dominated by the kernel, in standardised units."""
    process = subject.process
    sf2 = process.signal_variance
    pointwise = PointwiseBounds(unit_stats.scaled(sf2), sf2, process.noise_variance, map_rounding)
    size, parts = default_chunk_rows(features.rank), []
    for start in range(0, len(X), size):
        inputs = subject.tensor(X[start : start + size])
        with torch.no_grad():
            parts.append(pointwise(math.sqrt(sf2) * features(process.model.kernel_inputs(inputs))))
    return PredictionBounds(
        torch.cat([part.mean for part in parts]),
        torch.cat([part.mean_error for part in parts]),
        torch.cat([part.variance_lower for part in parts]),
        torch.cat([part.variance_upper for part in parts]),
    )


def bound_through_reference(subject: Subject, X: Rows, reference: Reference) -> PredictionBounds:
    """Bounds through a reference; by its dual weights on exact kernel values where N x n of them are few enough."""
    if len(X) * reference.joint.n > _MOST_KERNEL_VALUES:
        return bound_through_map(subject, X, reference.features, reference.statistics, reference.map_rounding)
    system = ExactSystem(reference, read_all(reference.problem.source))
    return system.bounds(system.reference_solution(), subject.tensor(X))


def solve_exactly(
    subject: Subject, X: Rows, reference: Reference, tol: float, confirm: Confirm | None, tell: Callable[[str], None]
) -> tuple[PredictionBounds | None, str, str]:
    """Means by conjugate gradients to ``tol`` in the units of y, after their cost was shown, or confirmed where there
    is a function for it (None where the user declined); what to do where they are not known to the tolerance; and the
    theorem that bounds them. ``tell`` hears of every step.
    """
    system = ExactSystem(reference, read_all(reference.problem.source))
    tol /= subject.unit
    estimate = system.estimate(tol)
    if confirm is None:
        print(f"certify: {estimate}", file=sys.stderr, flush=True)
    elif not confirm(estimate):
        return None, "conjugate gradients were declined; allow them, or raise tol", ""
    expected = estimate.products
    solution = system.solve(
        tol, progress=lambda used, bound: tell(f"solving the exact system: step {used} of about {expected}")
    )
    theorem = {"C1": "C1 (conjugate gradients)", "V7": "V7 (means)"}[solution.theorem]
    return system.bounds(solution, subject.tensor(X)), _REMEDIES[solution.ended].format(solution.products), theorem


def add_row_bounds(
    subject: Subject, certificate: Certificate, X: Rows, bounds: PredictionBounds, theorem: str
) -> Certificate:
    """Bounds on single predictions in the units of y: the triangle inequality through the reference's means."""
    unit = subject.unit
    mean, _ = subject.process.moments(subject.tensor(X))
    distance = (mean - bounds.mean).abs()
    if not bool(torch.isfinite(distance + bounds.mean_error + bounds.variance_upper).all()):
        raise NotCertifiableError(
            "the bounds on single predictions left the range of float64; fit with standardize=True, or bring X and y "
            "to ordinary units"
        )
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, {theorem}",
        evidence={**certificate.evidence, "mean_resolution": worst_error(subject, bounds)},
        mean_error=unit * (distance + bounds.mean_error).numpy(),
        mean_error_lower=unit * (distance - bounds.mean_error).clamp_min(0.0).numpy(),
        variance_lower=unit**2 * bounds.variance_lower.numpy(),
        variance_upper=unit**2 * bounds.variance_upper.numpy(),
    )


@torch.no_grad()
def add_predictive_divergence(
    certificate: Certificate, process: LowRankProcess, reference: Reference, X: Tensor
) -> Certificate:
    """P2 for the rows at which the low-rank model itself predicts, and how its variance differs from ``predict``'s."""
    inside = ~process.falls_back(X)
    notes, assumptions = list(certificate.notes), list(certificate.assumptions)
    if not bool(inside.all()):
        notes.append(
            f"{int((~inside).sum())} of {len(X)} rows lie outside the training inputs, where predictions fall back to "
            "the prior: the expected predictive KL leaves them out"
        )
    if process.variance_kind == "dtc" or process.noise_scale != 1.0:
        assumptions.append(
            "the expected predictive KL speaks of the low-rank model's own variance; predictions add what "
            "variance='dtc' restores of the prior and what calibration adds to the noise"
        )
    certificate = replace(certificate, notes=tuple(notes), assumptions=tuple(assumptions))
    if not bool(inside.any()):
        return certificate
    return replace(
        certificate,
        theorem=f"{certificate.theorem}, P2 (expected predictive KL)",
        predictive_kl=expected_predictive_kl(reference, X[inside]),
    )


def note_weak_bounds(subject: Subject, certificate: Certificate) -> Certificate:
    """Say so where a proven error is larger than what is known without any data."""
    deviation = subject.unit * math.sqrt(subject.process.signal_variance)
    weak = 0 if certificate.mean_error is None else int((certificate.mean_error > deviation).sum())
    if weak == 0:
        return certificate
    text = (
        f"on {weak} rows the bound on the mean exceeds the prior's own standard deviation ({deviation:.3g}) and says "
        "little; a better one reads the training rows again: tol in Python, --train FILE --tol E on the command line"
    )
    return replace(certificate, notes=(*certificate.notes, text))


def note_missed_tolerance(
    subject: Subject, certificate: Certificate, bounds: PredictionBounds, tol: float, advice: str
) -> Certificate:
    """Say so where the means are not known to the tolerance, and what would help."""
    if worst_error(subject, bounds) <= tol:
        return certificate
    text = f"exact means are known to +-{worst_error(subject, bounds):.3g}, not to tol={tol:g}: {advice}"
    return replace(certificate, notes=(*certificate.notes, text))


def worst_error(subject: Subject, bounds: PredictionBounds) -> float:
    """The largest error of a reference mean, in the units of y."""
    return float(bounds.mean_error.max()) * subject.unit


def read_all(source: RowSource) -> Chunk:
    """All rows at once, in float64."""
    return Chunk.join(list(source.chunks(source.n_rows))).to(torch.float64)
