"""Checks of arguments and rows, all made before any long work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from certgp.checks import check_choice as check_choice
from certgp.checks import check_count as check_count
from certgp.checks import check_flag as check_flag
from certgp.checks import check_fraction as check_fraction
from certgp.checks import check_positive, check_positives
from certgp.checks import numbers as numbers
from certgp.checks import one_number as one_number
from certgp.data import Rows, Standardiser, Summary, as_rows
from certgp.data.rows import is_frame
from certgp.data.summary import DISTINCT_LIMIT, checked_chunks
from certgp.engines import Engine, LocalEngine
from certgp.errors import ConstantDataWarning, ExtrapolationWarning, InvalidInputError, RankWarning, warn_user
from certgp.features.transformers import check_rank
from certgp.kernels import Kernel, kernel_from_name

OBJECTIVES = ("marginal", "elbo")
VARIANCES = ("dtc", "lowrank")
DTYPES = {"float64": torch.float64, "float32": torch.float32, "mixed": torch.float64}  # of passes over all rows
_DEFAULT_NOISE_RATIO = 0.1
_FLOATS = [np.float64, np.float32]


def check_minorising(name: str, value: object, wanted: str, choices: Sequence[str], model: str) -> str:
    """A choice that needs Phi Phi' <= K is refused for maps that do not prove it."""
    if check_choice(name, value, choices) == wanted:
        raise InvalidInputError(
            f"{name}={wanted!r} needs features below the kernel (Phi Phi' <= K), which {model} does not have; "
            f"use {name}={next(c for c in choices if c != wanted)!r}"
        )
    return str(value)


def check_engine(engine: object) -> Engine:
    """An engine by name, or an engine object."""
    if engine == "local":
        return LocalEngine()
    if isinstance(engine, str) or not callable(getattr(engine, "fold", None)):
        raise InvalidInputError(f"engine must be 'local' or an engine object with a fold method, found {engine!r}")
    return engine  # type: ignore[return-value]


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn calls a random state."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def load_rows(estimator: BaseEstimator, X: Any, y: Any = None, *, reset: bool = True, least_rows: int = 1) -> Rows:
    """Rows with a target from whatever the user gave, without a copy of it, after what scikit-learn checks: shapes,
    lengths, number and names of columns, which are noted on the estimator or (``reset=False``) compared with the fit's.

    Their numbers are not looked at: ``summarise``, ``check_finite`` and ``check_inputs`` do that in one pass.
    """
    required = {"y": None} if y is None and not isinstance(X, Rows) else {}
    inputs = _check_structure(estimator, X, reset, least_rows, **required)
    if isinstance(inputs, Rows):
        if inputs.take(slice(0, 1))[1] is None:
            raise InvalidInputError("the rows given as X hold no target y; give rows whose take() returns it")
        return as_rows(inputs, y)
    target = column_or_1d(y, warn=True)
    check_consistent_length(inputs, target)
    return as_rows(inputs, target)


def load_inputs(estimator: BaseEstimator, X: Any) -> Rows:
    """Rows to predict with a fitted estimator; the same as ``load_rows`` but for the target."""
    return as_rows(_check_structure(estimator, X, reset=False, least_rows=1))


def _check_structure(estimator: BaseEstimator, X: Any, reset: bool, least_rows: int, **required: None) -> Any:
    """X after scikit-learn's checks: as it was where a few rows show its structure, else the array they made of it."""
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


_MARGIN = 0.1  # of the range of a column, on either side


def check_inputs(rows: Rows, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """One pass over rows to predict: refuse NaN and infinity, count the rows that lie well outside the range
    [lower, upper] of the training inputs, and say where.

    A column that never varied has no range and is ignored by the model.
    """
    margin = np.where(upper > lower, _MARGIN * (upper - lower), np.inf)
    count, columns = 0, np.zeros(rows.n_columns, dtype=bool)
    for _, X, _ in checked_chunks(rows):
        outside = (lower - margin > X) | (upper + margin < X)
        count += int(outside.any(axis=1).sum())
        columns |= outside.any(axis=0)
    if count:
        names = [label for label, holds in zip(rows.labels, columns, strict=True) if holds]
        warn_user(ExtrapolationWarning.of(count, rows.n_rows, names))


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


def capped_rank(rank: object, distinct_rows: int, cap: bool, multiple: int = 1) -> int:
    """The rank asked for, or the number of distinct rows where that is smaller, as a multiple of ``multiple``."""
    wanted = check_rank(rank)
    if wanted < multiple:
        raise InvalidInputError(
            f"rank must be at least {multiple} for features that come in groups of {multiple}, found {wanted}"
        )
    capped = cap and distinct_rows < min(wanted, DISTINCT_LIMIT)
    usable = max(multiple, (distinct_rows if capped else wanted) // multiple * multiple)
    if capped:
        warn_user(
            f"rank={wanted} is more than the {distinct_rows} distinct row(s) of X; rank {usable} is used", RankWarning
        )
    return usable


@dataclass(frozen=True)
class StartingValues:
    """Kernel and noise at which a fit starts, in standardised units."""

    kernel: Kernel
    noise_variance: float


class HasStartingValues(Protocol):
    """The parameters of an estimator that say where its fit starts."""

    kernel: Any
    length_scale: Any
    signal_variance: float | None
    noise_variance: float | None


def starting_values(
    given: HasStartingValues,
    standardiser: Standardiser,
    default_length_scale: float,
    projected_dimension: int | None = None,
) -> StartingValues:
    """Translate what the user gave, in the units of the data, into standardised units; fill in what is missing.

    With a projection the kernel works on standardised coordinates of its own, so length-scales are taken as they are.
    """
    kernel = given.kernel
    if not isinstance(kernel, (str, Kernel)):
        raise InvalidInputError(f"kernel must be a name or a kernel object, found {kernel!r}")
    family = kernel_from_name(kernel) if isinstance(kernel, str) else type(kernel)
    length_scale, signal_variance = given.length_scale, given.signal_variance
    if isinstance(kernel, Kernel):
        length_scale = kernel.length_scale.detach().numpy() if length_scale is None else length_scale
        signal_variance = float(kernel.signal_variance) if signal_variance is None else signal_variance
    d = len(standardiser.x_scale) if projected_dimension is None else projected_dimension
    units = standardiser.x_scale if projected_dimension is None else np.ones(d)
    scales = (
        np.full(d, default_length_scale)
        if length_scale is None
        else per_dimension("length_scale", length_scale, d) / units
    )
    y_variance = standardiser.y_scale**2
    signal = 1.0 if signal_variance is None else check_positive("signal_variance", signal_variance) / y_variance
    noise = (
        _DEFAULT_NOISE_RATIO
        if given.noise_variance is None
        else check_positive("noise_variance", given.noise_variance) / y_variance
    )
    return StartingValues(family(scales, signal), noise)


def per_dimension(name: str, value: Any, dimension: int) -> NDArray[np.float64]:
    """Positive numbers, one per kernel dimension; a single one serves all."""
    return check_positives(name, value, dimension, f"the kernel works in {dimension} dimension(s)")
