"""Feature maps phi with phi(x)'phi(x') close to k(x, x'): Mercer, Fourier, Nystrom."""

from importlib import import_module
from typing import Any

from certgp.features.base import FeatureMap, build_features
from certgp.features.data_mercer import data_mercer_map, mean_gap
from certgp.features.fourier import FourierMap
from certgp.features.index_sets import box_indices, eigenvalue_tail, optimal_indices, total_degree_indices
from certgp.features.inducing import greedy_inducing_points, greedy_rows, kmeans_inducing_points
from certgp.features.mercer import MercerMap
from certgp.features.nystrom import NystromMap, nystrom_features
from certgp.features.residual import ResidualMap, residual_points

__all__ = [
    "FeatureMap",
    "FourierFeatures",
    "FourierMap",
    "MercerFeatures",
    "MercerMap",
    "NystromFeatures",
    "NystromMap",
    "ResidualMap",
    "box_indices",
    "build_features",
    "data_mercer_map",
    "eigenvalue_tail",
    "greedy_inducing_points",
    "greedy_rows",
    "kmeans_inducing_points",
    "mean_gap",
    "nystrom_features",
    "optimal_indices",
    "residual_points",
    "total_degree_indices",
]
_TRANSFORMERS = ("FourierFeatures", "MercerFeatures", "NystromFeatures")


def __getattr__(name: str) -> Any:
    """The scikit-learn transformers live among the estimators and are looked up there when they are asked for."""
    if name not in _TRANSFORMERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("certgp.estimators.feature_transformers"), name)
