"""The rows behind a fitted model, where they are read again."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from torch import Tensor

from certgp.data import Rows, RowSource, StandardisedRows, check_finite
from certgp.data.copies import without_copies
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.validation import check_row_pair, load_rows
from certgp.guarantees.rank_curve import RankCurve, rank_curve_of
from certgp.models import FittedModel


def source_of(model: FittedModel, rows: Rows) -> StandardisedRows:
    """Rows in the user's units as a fitted model takes them."""
    return StandardisedRows(rows, model.standardiser, torch.float64 if model.in_float64 else torch.float32)


def training_source(
    estimator: BaseEstimator, model: FittedModel, given: tuple[ArrayLike, ...] | Rows | None
) -> RowSource:
    """The rows that the model was conditioned on: those given, or those of the fit."""
    rows = model.rows
    if given is not None:
        rows = load_rows(estimator, *check_row_pair(given), reset=False)
        check_finite(rows)
        if rows.n_rows > model.process.n_rows:
            rows = without_copies(rows)  # as ``fit`` did
    if rows is None:
        raise NotCertifiableError(
            "this certificate reads the training rows again, and a model that was loaded, unpickled, copied deeply "
            "or extended by partial_fit does not have them: certify(rows=(X, y)) in Python, --train FILE on the "
            "command line"
        )
    if rows.n_rows != model.process.n_rows:
        raise InvalidInputError(
            f"rows has {rows.n_rows} rows but the model was conditioned on {model.process.n_rows}; pass those "
            "given to fit"
        )
    return source_of(model, rows)


def curve_of_model(
    estimator: BaseEstimator, model: FittedModel, X: ArrayLike | Rows | None, y: ArrayLike | None
) -> RankCurve:
    """The rank curve of a fitted model in the units of y, with validation rows X (n, D), y (n,) if any."""
    validation = None if X is None and y is None else validation_rows(estimator, model, X, y)
    curve = rank_curve_of(model.process, validation, model.in_float64)
    shift, log_unit = model.evidence_shift, math.log(model.standardiser.y_scale)
    elbo = None if curve.elbo is None else curve.elbo + shift
    nlpd = None if curve.nlpd is None else curve.nlpd + log_unit
    return replace(curve, log_evidence=curve.log_evidence + shift, elbo=elbo, nlpd=nlpd)


def validation_rows(
    estimator: BaseEstimator, model: FittedModel, X: ArrayLike | Rows | None, y: ArrayLike | None
) -> tuple[Tensor, Tensor]:
    """Rows X (n, D), y (n,) to score a curve on, standardised."""
    if (X is None) != (y is None) and not isinstance(X, Rows):
        raise InvalidInputError("rank_curve takes validation rows as X and y together; one of them is missing")
    rows = load_rows(estimator, X, y, reset=False)
    check_finite(rows)
    chunk = StandardisedRows(rows, model.standardiser).take(slice(None))
    return chunk.X, chunk.y
