"""certgp: low-rank Gaussian-process regression that proves how far it is from the exact GP."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from certgp.errors import (
    BadRowsWarning,
    CertgpError,
    CertgpWarning,
    CheckpointError,
    ConstantDataWarning,
    ConvergenceWarning,
    DataFileError,
    ExtrapolationWarning,
    FarNumbersWarning,
    FarPredictionWarning,
    HeaderWarning,
    InvalidInputError,
    ModelFileError,
    NotCertifiableError,
    RankWarning,
    RepeatedRowsWarning,
    VacuousBoundWarning,
    WeakSignalWarning,
    WeightScaleWarning,
)
from certgp.methods import BUILT_IN
from certgp.version import __version__

if TYPE_CHECKING:
    from certgp.data import read as read
    from certgp.estimators import AutoGP as AutoGP
    from certgp.estimators import DeepFourierGP as DeepFourierGP
    from certgp.estimators import DeepMercerGP as DeepMercerGP
    from certgp.estimators import ExactGP as ExactGP
    from certgp.estimators import FourierGP as FourierGP
    from certgp.estimators import LocalGP as LocalGP
    from certgp.estimators import MercerGP as MercerGP
    from certgp.estimators import SparseGP as SparseGP
    from certgp.estimators import estimate_fit as estimate_fit
    from certgp.estimators import load as load

# Read when torch is loaded, so without effect where that came first. By default waiting OpenMP threads spin: they take
# the cores from the compiled loops' threads and from other programs (docs/decisions/0011).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


_ESTIMATORS = {method.class_name: method for method in BUILT_IN}
__all__ = [
    "BadRowsWarning",
    "CertgpError",
    "CertgpWarning",
    "CheckpointError",
    "ConstantDataWarning",
    "ConvergenceWarning",
    "DataFileError",
    "ExtrapolationWarning",
    "FarNumbersWarning",
    "FarPredictionWarning",
    "HeaderWarning",
    "InvalidInputError",
    "ModelFileError",
    "NotCertifiableError",
    "RankWarning",
    "RepeatedRowsWarning",
    "VacuousBoundWarning",
    "WeakSignalWarning",
    "WeightScaleWarning",
    "__version__",
    "estimate_fit",
    "load",
    "read",
    *_ESTIMATORS,
]


def __getattr__(name: str) -> object:
    # torch takes a second to import; `certgp --help` and `import certgp.errors` should not
    if name in _ESTIMATORS:
        return _ESTIMATORS[name].load()
    if name in ("estimate_fit", "load"):
        return getattr(import_module("certgp.estimators"), name)
    if name == "read":
        return import_module("certgp.data").read
    raise AttributeError(f"module 'certgp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
