"""scikit-learn estimators: parameters, validation, and the model that a recipe trains."""

from certgp.estimators.auto import AutoGP
from certgp.estimators.base import GPRegressor
from certgp.estimators.cost import FitEstimate, estimate_fit
from certgp.estimators.deep_fourier import DeepFourierGP
from certgp.estimators.deep_mercer import DeepMercerGP
from certgp.estimators.exact import ExactGP
from certgp.estimators.fourier import FourierGP
from certgp.estimators.local import LocalGP
from certgp.estimators.mercer import MercerGP
from certgp.estimators.parameters import (
    LowRankParameters,
    ManyRowsParameters,
    ObjectiveParameters,
    SharedParameters,
    StartParameters,
)
from certgp.estimators.persistence import load
from certgp.estimators.sparse import SparseGP

__all__ = [
    "AutoGP",
    "DeepFourierGP",
    "DeepMercerGP",
    "ExactGP",
    "FitEstimate",
    "FourierGP",
    "GPRegressor",
    "LocalGP",
    "LowRankParameters",
    "ManyRowsParameters",
    "MercerGP",
    "ObjectiveParameters",
    "SharedParameters",
    "SparseGP",
    "StartParameters",
    "estimate_fit",
    "load",
]
