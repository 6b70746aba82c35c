"""Checks of arguments and rows, all made before any long work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from certgp.data import Rows, Summary, as_rows, summarise
from certgp.data.columns import Numbers
from certgp.data.copies import without_copies
from certgp.data.rows import Weights, is_frame, weigh_rows
from certgp.data.streams import as_stream
from certgp.data.summary import BLOCK_ROWS, Shape, check_block
from certgp.engines import Engine, LocalEngine
from certgp.errors import (
    ConstantDataWarning,
    ExtrapolationWarning,
    FarNumbersWarning,
    FarPredictionWarning,
    InvalidInputError,
    RepeatedRowsWarning,
    WeightScaleWarning,
    warn_user,
)

_FLOATS = [np.float64, np.float32]


def check_engine(engine: object) -> Engine:
    """An engine by name, or an engine object."""
    if engine == "local":
        return LocalEngine()
    if isinstance(engine, str) or not callable(getattr(engine, "fold", None)):
        raise InvalidInputError(f"engine must be 'local' or an engine object with a fold method, found {engine!r}")
    return engine  # type: ignore[return-value]


def new_generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn calls a random state."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def new_torch_generator(random_state: Any) -> torch.Generator:
    """The same of torch."""
    return torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))


def load_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    least_rows: int = 1,
) -> Rows:
    """Rows with a target from whatever the user gave, without a copy of it, after what scikit-learn checks: shapes,
    lengths, number and names of columns, which are noted on the estimator or (``reset=False``) compared with the fit's.
    Rows of weight zero are left out.

    Their numbers are not looked at: ``summarise``, ``check_finite`` and ``check_inputs`` do that in one pass.
    """
    required = {"y": None} if y is None and not isinstance(X, Rows) else {}
    inputs = _check_structure(estimator, X, reset, least_rows, **required)
    if isinstance(inputs, Rows):
        if inputs.take(slice(0, 1))[1] is None:
            raise InvalidInputError("the rows given as X hold no target y; give rows whose take() returns it")
        rows = as_rows(inputs, y)
    else:
        target = y if _has_columns(y) else column_or_1d(y, warn=True)
        check_consistent_length(inputs, target)
        rows = as_rows(inputs, target)
    if not reset:
        _check_outputs(estimator, rows)
    rows = weigh_rows(rows, sample_weight)
    if reset:
        warn_about_weights(rows)
    if rows.n_rows < least_rows:
        raise InvalidInputError(
            f"sample_weight leaves {rows.n_rows} row(s) of weight above zero; at least {least_rows} are needed"
        )
    return rows


def _has_columns(y: Any) -> bool:
    """Is this y (N, q) of several outputs?"""
    with suppress(ValueError):  # ragged ones are for scikit-learn to refuse
        values = np.asarray(y)
        return values.ndim == 2 and values.shape[1] > 1
    return False


def has_outputs(rows: Rows) -> bool:
    """Do the rows have several outputs, y (n, q)?"""
    y = rows.take(slice(0, 1))[1]
    return y is not None and y.ndim == 2


def _check_outputs(estimator: BaseEstimator, rows: Rows) -> None:
    """Refuse rows with other outputs than those of the fit."""
    y, parts = rows.take(slice(0, 1))[1], vars(estimator).get("outputs_")
    found = None if y is None or y.ndim == 1 else y.shape[1]
    fitted = None if parts is None else len(parts)
    if found != fitted:
        shape, other = ("(n,)" if count is None else f"(n, {count})" for count in (found, fitted))
        raise InvalidInputError(f"y has shape {shape} and the fit had y of shape {other}; give the outputs of the fit")


def load_inputs(
    estimator: BaseEstimator, X: Any, lower: NDArray[np.float64], upper: NDArray[np.float64], returns_to_prior: bool
) -> Rows:
    """Rows to predict with a fitted estimator; the same as ``load_rows`` but for the target. ``check_inputs`` reads
    them.
    """
    rows = as_rows(_check_structure(estimator, X, reset=False, least_rows=1))
    check_inputs(rows, lower, upper, returns_to_prior).warn()
    return rows


def _check_structure(estimator: BaseEstimator, X: Any, reset: bool, least_rows: int, **required: None) -> Any:
    """X after scikit-learn's checks: as it was where a few rows show its structure, else the array they made of it."""
    _refuse_sources(X)
    options = {"dtype": _FLOATS, "ensure_all_finite": False, "reset": reset, "ensure_min_samples": least_rows}
    if isinstance(X, (list, tuple)):
        with suppress(ValueError):  # ragged ones are for scikit-learn to refuse
            X = np.asarray(X)
    if isinstance(X, Rows):
        rows, _ = X.take(slice(0, least_rows))
        header = rows if X.names is None else pa.table(list(rows.T.copy()), names=list(X.names))
    elif is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        as_rows(X).take(slice(0, least_rows))  # refuses words and dates by the names of their columns
        header = X[:least_rows]
    else:
        return validate_data(estimator, X, **options, **required)
    validate_data(estimator, header, **options, **required)
    return X


def _refuse_sources(X: Any) -> None:
    """Names of files, and what can only be read batch by batch, are for ``certgp.read``."""
    stream = as_stream(X)
    if isinstance(X, (str, Path)) or (stream is not None and stream.delayed is None):
        found = repr(str(X)) if stream is None else stream.what
        raise InvalidInputError(
            f"X must hold numbers, found {found}; read it first and give the rows: certgp.read(..., target=...), "
            "without a target where there is none to learn from"
        )


_MARGIN = 0.1  # of the range of a column, on either side
_MANY = 0.05  # of the rows: so many are worth a warning, however near to the range they are


@dataclass(frozen=True)
class OutsideRange:
    """Rows that lie outside the range of the training inputs; ``+`` joins those of several chunks."""

    n_rows: int = 0  # all that were looked at
    outside: int = 0
    well_outside: int = 0  # by more than a tenth of the range
    columns: tuple[str, ...] = ()  # where
    returns_to_prior: bool = True  # what predictions do there

    def __add__(self, other: OutsideRange) -> OutsideRange:
        return OutsideRange(
            self.n_rows + other.n_rows,
            self.outside + other.outside,
            self.well_outside + other.well_outside,
            tuple(dict.fromkeys(self.columns + other.columns)),
            self.returns_to_prior and other.returns_to_prior,
        )

    def warn(self) -> None:
        """Say how many rows lie outside, and where: if any lies well outside, or many do at all."""
        if self.well_outside or self.outside > _MANY * self.n_rows:
            counts = (self.outside, self.well_outside, self.n_rows)
            warn_user(ExtrapolationWarning.of(*counts, self.columns, self.returns_to_prior))


def check_inputs(
    rows: Rows, lower: NDArray[np.float64], upper: NDArray[np.float64], returns_to_prior: bool
) -> OutsideRange:
    """One pass over rows to predict: refuse NaN and infinity, count the rows outside the range [lower, upper] of the
    training inputs, and find out in which columns.

    A column that never varied has no range and is ignored by the model.
    """
    found = rows.fold(partial(_look_outside, Shape.of(rows), lower, upper, returns_to_prior), BLOCK_ROWS)
    return replace(found, columns=tuple(label for label in rows.labels if label in found.columns))


def _look_outside(
    shape: Shape,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    returns_to_prior: bool,
    here: slice,
    X: Numbers,
    y: Numbers | None,
    _: Weights,
) -> OutsideRange:
    """``check_inputs`` of a block."""
    check_block(shape, here, X, y)
    varies = upper > lower
    margin = _MARGIN * (upper - lower)
    outside = ((lower > X) | (upper < X)) & varies
    if not outside.any():
        return OutsideRange(len(X), returns_to_prior=returns_to_prior)
    well = (((lower - margin > X) | (upper + margin < X)) & varies).any(axis=1)
    names = tuple(shape.labels[j] for j in np.flatnonzero(outside.any(axis=0)))
    return OutsideRange(len(X), int(outside.any(axis=1).sum()), int(well.sum()), names, returns_to_prior)


def leave_copies_out(estimator: BaseEstimator, rows: Rows, summary: Summary) -> tuple[Rows, Summary]:
    """Rows to fit to with their summary, verbatim copies once; says how many there are. Where nothing is learned they
    mislead nobody, and the exact GP of all rows as given is what was asked for.
    """
    distinct = without_copies(rows) if estimator.get_params(deep=False).get("optimize", True) else rows
    if distinct is rows:
        return rows, summary
    warn_user(
        f"{rows.n_rows - distinct.n_rows} of {rows.n_rows} rows are verbatim copies of others, target included, and "
        "count once: a copy is no second observation. If they are observations of their own, give the distinct rows "
        "with their counts as sample_weight",
        RepeatedRowsWarning,
    )
    return distinct, summarise(distinct)


def warn_about_columns(summaries: Sequence[Summary], standardize: bool) -> None:
    """Say which columns do not vary or have numbers far from all others; one summary for each output."""
    for summary in summaries:
        warn_about_constants(summary, standardize)
    if standardize:
        warn_about_far_numbers(summaries[0])


def warn_about_constants(summary: Summary, centred: bool) -> None:
    """Say which columns, or that the target, do not vary."""
    same = summary.inputs.least == summary.inputs.largest
    constant = [label for label, holds in zip(summary.labels, same, strict=True) if holds]
    if constant:
        labels = ", ".join(constant[:10]) + (", ..." if len(constant) > 10 else "")
        warn_user(
            f"column(s) {labels} of X do not vary and carry no information; they are ignored", ConstantDataWarning
        )
    if summary.target is not None and summary.target_is_constant:
        value = summary.target.least[0]
        promise = f"; every prediction will be {value:g}" if centred else f" (it is always {value:g})"
        warn_user(f"the target y does not vary{promise}", ConstantDataWarning)


def warn_about_far_numbers(summary: Summary) -> None:
    """Say which columns have numbers so far from all others that they are left out of the column's scale."""
    for j in np.flatnonzero(summary.far):
        moments = summary.inputs
        ends = (moments.least[j], moments.largest[j])
        furthest = max(ends, key=lambda end: abs(end - moments.mean[j]))
        warn_user(
            f"column {summary.labels[j]} of X has numbers far from all others (such as {furthest:g}, where most are "
            f"{moments.mean[j]:.3g} +- {moments.scale[j]:.2g}): it is scaled by the others. If they stand for missing "
            "values, fill these in or leave the rows out",
            FarNumbersWarning,
        )


_SMALL_WEIGHTS, _LARGE_WEIGHTS = 0.1, 1e3  # on average; noise is sought within 1e-4 and 1e4 times the signal


def warn_about_weights(rows: Rows) -> None:
    """Say that weights are small or large on average: the noise variance of weight one is then far from that of any
    row, and may lie outside what a fit tries.
    """
    weights = None if rows.weights_stay else rows.weights(slice(None))
    if weights is None or _SMALL_WEIGHTS <= (mean := float(weights.mean())) <= _LARGE_WEIGHTS:
        return
    warn_user(
        f"sample_weight is {mean:.2g} on average, and the noise variance of a row is noise_variance_ / sample_weight: "
        "the noise that suits these rows may not be found. Divide the weights by their mean; noise_variance_ is then "
        "that of an average row",
        WeightScaleWarning,
    )


_FAR_PREDICTION = 0.5  # of the range of the training targets, beyond either end


def warn_about_far_predictions(mean: NDArray[np.float64], targets: Sequence[tuple[float, float] | None]) -> None:
    """Say how many predictions (n,), or (n, q), are far from all training targets, whose ranges these are for each
    output, and the furthest of them.
    """
    for column, ends in zip(mean.reshape(len(mean), -1).T, targets, strict=True):
        if ends is not None and ends[0] < ends[1]:
            _warn_about_far_column(column, *ends)


def _warn_about_far_column(mean: NDArray[np.float64], low: float, high: float) -> None:
    beyond = np.maximum(low - mean, mean - high)
    far = beyond > _FAR_PREDICTION * (high - low)
    if far.any():
        warn_user(
            f"{int(far.sum())} of {len(mean)} prediction(s) are far outside the training targets, {low:.4g} to "
            f"{high:.4g} (the furthest is {mean[int(beyond.argmax())]:.4g}): there is no row like these, or the model "
            "has learned a trend that does not go on",
            FarPredictionWarning,
        )


def check_row_pair(rows: object) -> tuple[Any, Any, Any]:
    """The training rows that ``certify(rows=...)`` takes, as X, y and weights: a pair (X, y), a triple with weights, or
    rows that hold their target.
    """
    if isinstance(rows, Rows):
        return rows, None, None
    if not isinstance(rows, (tuple, list)) or len(rows) not in (2, 3):
        shape = getattr(rows, "shape", None)
        found = type(rows).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise InvalidInputError(
            f"rows must be the pair (X, y) of the training rows, (X, y, sample_weight), or rows of certgp.read, found "
            f"{found}"
        )
    return rows[0], rows[1], rows[2] if len(rows) == 3 else None
