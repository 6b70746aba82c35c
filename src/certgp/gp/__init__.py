"""The mathematics of one Gaussian process: statistics, evidence, posterior, and the exact GP."""

from certgp.gp.calibration import noise_scale
from certgp.gp.evidence import (
    EvidenceGradient,
    elbo,
    evidence_gradient,
    log_evidence,
    log_evidence_lower_bound,
    log_evidence_upper_bound,
)
from certgp.gp.exact import ExactProcess, exact_log_evidence
from certgp.gp.exchange import BasisPool
from certgp.gp.full_scale import FullScaleProcess
from certgp.gp.iterative import IterativeProcess
from certgp.gp.local import LocalProcess
from certgp.gp.mixture import Mixture, MixtureProcess, mixture_log_density, mixture_moments, mixture_quantiles
from certgp.gp.model import LowRankModel
from certgp.gp.noise import NOISES, Noise, NoiseGain, NoiseInputs, NoiseModel
from certgp.gp.posterior import LowRankPosterior
from certgp.gp.process import Box, GaussianProcess, LowRankProcess
from certgp.gp.profile import NOISE_RATIO_BOUNDS, Profile, profile_evidence
from certgp.gp.selection import greedy_selection
from certgp.gp.spectrum import GramSpectrum, SpectralGradient
from certgp.gp.statistics import Statistics, feature_cotangent

__all__ = [
    "NOISES",
    "NOISE_RATIO_BOUNDS",
    "BasisPool",
    "Box",
    "EvidenceGradient",
    "ExactProcess",
    "FullScaleProcess",
    "GaussianProcess",
    "GramSpectrum",
    "IterativeProcess",
    "LocalProcess",
    "LowRankModel",
    "LowRankPosterior",
    "LowRankProcess",
    "Mixture",
    "MixtureProcess",
    "Noise",
    "NoiseGain",
    "NoiseInputs",
    "NoiseModel",
    "Profile",
    "SpectralGradient",
    "Statistics",
    "elbo",
    "evidence_gradient",
    "exact_log_evidence",
    "feature_cotangent",
    "greedy_selection",
    "log_evidence",
    "log_evidence_lower_bound",
    "log_evidence_upper_bound",
    "mixture_log_density",
    "mixture_moments",
    "mixture_quantiles",
    "noise_scale",
    "profile_evidence",
]
