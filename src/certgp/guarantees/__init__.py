"""Certificates: proven distances between a low-rank GP and the exact one. One file per theorem."""

from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.dominated import certify_dominated, sharpened_trace_bound
from certgp.guarantees.pointwise import PredictionBounds, pointwise_bounds
from certgp.guarantees.rank_curve import RankCurve, fourier_rank_curve, nested_rank_curve
from certgp.guarantees.reference import ReferenceResult, certify_through_reference, reference_features

__all__ = [
    "Certificate",
    "Interval",
    "PredictionBounds",
    "RankCurve",
    "ReferenceResult",
    "certify_dominated",
    "certify_through_reference",
    "fourier_rank_curve",
    "nested_rank_curve",
    "pointwise_bounds",
    "reference_features",
    "sharpened_trace_bound",
]
