"""What ``certify`` does with one fitted model: what is known, what is asked for, what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certgp.data import Rows
from certgp.engines import Engine
from certgp.errors import NotCertifiableError
from certgp.estimators.training_rows import training_source
from certgp.guarantees import Certificate
from certgp.guarantees.certify import Request, certify
from certgp.models import FittedModel


def certify_model(
    estimator: BaseEstimator,
    model: FittedModel,
    new: Rows | None,
    rows: tuple[ArrayLike, ...] | Rows | None,
    request: Request,
    engine: Engine,
    new_generator: Callable[[], np.random.Generator],
) -> tuple[Certificate, FittedModel]:
    """The certificate, and the model with the tightest statement about its training rows so far. ``new`` are rows to
    predict, ``rows`` the training rows where they were given.
    """
    known, plain = model.certificate, new is None and request.plain
    if plain and rows is None and known is not None and model.rows is None:
        return known, model
    if not model.in_float64:
        raise NotCertifiableError(
            "float32 features leave rounding errors that the bounds do not cover; fit with dtype='float64' instead"
        )
    found = certify(
        model.process,
        model.standardiser,
        None if new is None else new.take(slice(None))[0],
        partial(training_source, estimator, model, rows),
        request,
        engine,
        new_generator,
        check_rows=rows is not None,
    )
    if plain and known is not None and known.kl.upper <= found.kl.upper:
        return known, model
    if found.confidence == 1.0 and (known is None or found.kl.upper < known.kl.upper):
        return found, replace(model, certificate=found.without_rows())
    return found, model
