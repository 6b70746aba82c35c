"""Certificates: proven distances between a low-rank GP and the exact one. One file per theorem."""

from certgp.guarantees.certificate import Certificate, ExpectedPredictiveKL, Interval
from certgp.guarantees.dense import Proposition1, gaussian_kl, proposition1, spectral_error_bound
from certgp.guarantees.dominated import certify_dominated, sharpened_trace_bound
from certgp.guarantees.exact_solve import CostEstimate, ExactSolution, ExactSystem
from certgp.guarantees.fourier_rank import FourierRank, fourier_rank, fourier_rank_bound
from certgp.guarantees.mercer_rank import mercer_rank, mercer_tail
from certgp.guarantees.operator_spectrum import matern12_eigenvalues, quadrature_eigenvalues, ritz_eigenvalues
from certgp.guarantees.pointwise import PointwiseBounds, PredictionBounds, pointwise_bounds
from certgp.guarantees.predictive import expected_predictive_kl
from certgp.guarantees.rank_curve import RankCurve, ValidationRows, nested_rank_curve, paired_rank_curve
from certgp.guarantees.reference import (
    Problem,
    Reference,
    certify_through,
    check_certifiable,
    growing_references,
    read_reference,
)
from certgp.guarantees.reference_maps import reference_features
from certgp.guarantees.row_losses import RowLosses, log_determinant_bound, reverse_divergence_bound
from certgp.guarantees.sandwich import covariance_sandwich, moments_within
from certgp.guarantees.statistical import tighten

__all__ = [
    "Certificate",
    "CostEstimate",
    "ExactSolution",
    "ExactSystem",
    "ExpectedPredictiveKL",
    "FourierRank",
    "Interval",
    "PointwiseBounds",
    "PredictionBounds",
    "Problem",
    "Proposition1",
    "RankCurve",
    "Reference",
    "RowLosses",
    "ValidationRows",
    "certify_dominated",
    "certify_through",
    "check_certifiable",
    "covariance_sandwich",
    "expected_predictive_kl",
    "fourier_rank",
    "fourier_rank_bound",
    "gaussian_kl",
    "growing_references",
    "log_determinant_bound",
    "matern12_eigenvalues",
    "mercer_rank",
    "mercer_tail",
    "moments_within",
    "nested_rank_curve",
    "paired_rank_curve",
    "pointwise_bounds",
    "proposition1",
    "quadrature_eigenvalues",
    "read_reference",
    "reference_features",
    "reverse_divergence_bound",
    "ritz_eigenvalues",
    "sharpened_trace_bound",
    "spectral_error_bound",
    "tighten",
]
