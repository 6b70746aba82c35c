"""The inside of a fitted estimator, which measurements need and users do not: the one place that reads it."""

from __future__ import annotations

import numpy as np

from certgp.data import StandardisedRows, as_rows
from certgp.engines import LocalEngine
from certgp.estimators.base import GPRegressor
from certgp.gp import LowRankProcess
from certgp.guarantees.subject import Subject
from certgp.models import FittedModel


def model_of(gp: GPRegressor) -> FittedModel:
    """What the estimator predicts with."""
    model = gp._model
    if model is None:
        raise ValueError(f"this {type(gp).__name__} has not been fitted")
    return model


def process_of(gp: GPRegressor) -> LowRankProcess:
    """Its low-rank process, in standardised units."""
    process = model_of(gp).process
    if not isinstance(process, LowRankProcess):
        raise TypeError(f"{type(gp).__name__} holds a {type(process).__name__}, not a low-rank process")
    return process


def standardised_rows(gp: GPRegressor, X: np.ndarray, y: np.ndarray) -> StandardisedRows:
    """Rows as the process sees them."""
    return StandardisedRows(as_rows(X, y), model_of(gp).standardiser)


def subject_of(gp: GPRegressor, process: LowRankProcess) -> Subject:
    """A process in this estimator's units, to be certified."""
    return Subject(process, model_of(gp).standardiser, LocalEngine(), lambda: np.random.default_rng(0))
