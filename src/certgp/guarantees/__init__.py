"""Certificates: proven distances between a low-rank GP and the exact one. One file per theorem."""

from certgp.guarantees.certificate import Certificate, ExpectedPredictiveKL, Interval
from certgp.guarantees.dense import Proposition1, gaussian_kl, proposition1, spectral_error_bound
from certgp.guarantees.dominated import certify_dominated, sharpened_trace_bound
from certgp.guarantees.exact_solve import CostEstimate, ExactSolution, ExactSystem
from certgp.guarantees.fourier_rank import FourierRank, fourier_rank, fourier_rank_bound
from certgp.guarantees.iterative import certify_iterative, quadratic_interval
from certgp.guarantees.local_certificate import (
    LocalProblem,
    bound_predictions,
    bracket_probes,
    bracket_rows,
    certify_local,
    solve_targets,
)
from certgp.guarantees.local_factor import LocalFactor, divergence_below, local_factor
from certgp.guarantees.local_low_rank import (
    ResidualCovariance,
    divergence_above_by_map,
    full_scale_divergence_above,
    full_scale_divergence_by_sample,
)
from certgp.guarantees.local_probes import bracket_by_probes, draw_probes
from certgp.guarantees.local_rows import KernelCovariance, RowBounds, bound_rows, divergence_terms
from certgp.guarantees.local_sample import bracket_by_sample
from certgp.guarantees.local_solution import DualWeights, judge_weights
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
from certgp.guarantees.words import Explanation, Yardstick, explain, rank_for

__all__ = [
    "Certificate",
    "CostEstimate",
    "DualWeights",
    "ExactSolution",
    "ExactSystem",
    "ExpectedPredictiveKL",
    "Explanation",
    "FourierRank",
    "Interval",
    "KernelCovariance",
    "LocalFactor",
    "LocalProblem",
    "PointwiseBounds",
    "PredictionBounds",
    "Problem",
    "Proposition1",
    "RankCurve",
    "Reference",
    "ResidualCovariance",
    "RowBounds",
    "RowLosses",
    "ValidationRows",
    "Yardstick",
    "bound_predictions",
    "bound_rows",
    "bracket_by_probes",
    "bracket_by_sample",
    "bracket_probes",
    "bracket_rows",
    "certify_dominated",
    "certify_iterative",
    "certify_local",
    "certify_through",
    "check_certifiable",
    "covariance_sandwich",
    "divergence_above_by_map",
    "divergence_below",
    "divergence_terms",
    "draw_probes",
    "expected_predictive_kl",
    "explain",
    "fourier_rank",
    "fourier_rank_bound",
    "full_scale_divergence_above",
    "full_scale_divergence_by_sample",
    "gaussian_kl",
    "growing_references",
    "judge_weights",
    "local_factor",
    "log_determinant_bound",
    "matern12_eigenvalues",
    "mercer_rank",
    "mercer_tail",
    "moments_within",
    "nested_rank_curve",
    "paired_rank_curve",
    "pointwise_bounds",
    "proposition1",
    "quadratic_interval",
    "quadrature_eigenvalues",
    "rank_for",
    "read_reference",
    "reference_features",
    "reverse_divergence_bound",
    "ritz_eigenvalues",
    "sharpened_trace_bound",
    "solve_targets",
    "spectral_error_bound",
    "tighten",
]
