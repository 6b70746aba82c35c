"""Checks of arguments and rows, all made before any long work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from certgp.checks import check_choice as check_choice
from certgp.checks import check_count as check_count
from certgp.checks import check_flag as check_flag
from certgp.checks import check_fraction as check_fraction
from certgp.checks import check_positive, check_positives, check_rank
from certgp.checks import numbers as numbers
from certgp.checks import one_number as one_number
from certgp.data import Standardiser
from certgp.engines import Engine, LocalEngine
from certgp.errors import ConstantDataWarning, ExtrapolationWarning, InvalidInputError, RankWarning, warn_user
from certgp.estimators.columns import column_names, refuse_dates
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


def checked_rows(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, **options: Any
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """X (N, D) and y (N,) as scikit-learn validates them; float32 stays float32, so a memory map is not copied."""
    refuse_dates(X, y)
    try:
        rows, target = validate_data(estimator, X, y, dtype=_FLOATS, y_numeric=True, **options)
        if target.dtype.kind in "US":
            target = target.astype(np.float64)
    except ValueError as error:
        raise _naming_the_words(error, X, y) from error
    return rows, target


def checked_inputs(estimator: BaseEstimator, X: ArrayLike) -> NDArray[np.floating]:
    """X (n, D) for a fitted estimator."""
    refuse_dates(X)
    try:
        rows: NDArray[np.floating] = validate_data(estimator, X, dtype=_FLOATS, reset=False)
    except ValueError as error:
        raise _naming_the_words(error, X, None) from error
    return rows


def _naming_the_words(error: ValueError, X: ArrayLike, y: ArrayLike | None) -> ValueError:
    """'could not convert string to float' says what was found, not where: name the argument and the column."""
    if "could not convert" not in str(error):
        return error
    if y is not None and not _is_numeric(np.asarray(y)):
        return InvalidInputError(f"the target y holds words instead of numbers ({error}); encode it as numbers")
    table = np.asarray(X)
    wordy = [name for j, name in enumerate(column_names(X)) if not _is_numeric(table[:, j])]
    return InvalidInputError(
        f"column(s) {', '.join(wordy)} of X hold words instead of numbers ({error}); encode or drop them"
    )


def _is_numeric(values: NDArray[Any]) -> bool:
    try:
        values.astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


_LARGEST, _SMALLEST = 1e150, 1e-150  # their squares, which are variances, are still ordinary numbers


def check_magnitudes(X: NDArray[np.floating], y: NDArray[np.floating], names: NDArray[np.object_] | None) -> None:
    """Refuse columns of X (N, D), or a target y (N,), whose variance no floating-point number can hold."""
    for j, (least, most) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True)):
        _check_magnitude(float(least), float(most), f"column {j if names is None else names[j]} of X")
    _check_magnitude(float(y.min()), float(y.max()), "the target y")


def _check_magnitude(least: float, most: float, what: str) -> None:
    if max(-least, most) > _LARGEST:
        raise InvalidInputError(f"{what} holds numbers too large to square ({max(-least, most):.1e}); rescale it")
    if least < most and most - least < _SMALLEST:
        raise InvalidInputError(f"{what} varies too little to square ({most - least:.1e}); rescale it")


_MARGIN = 0.1  # of the range of a column, on either side


def warn_about_extrapolation(
    X: NDArray[np.floating],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    names: NDArray[np.object_] | None,
) -> None:
    """Count the rows of X (n, D) that lie well outside the range [lower, upper] of the training inputs, and say where.

    A column that never varied has no range and is ignored by the model.
    """
    margin = np.where(upper > lower, _MARGIN * (upper - lower), np.inf)
    outside = (lower - margin > X) | (upper + margin < X)
    count = int(outside.any(axis=1).sum())
    if count:
        columns = np.flatnonzero(outside.any(axis=0))
        labels = [str(names[j]) if names is not None else str(j) for j in columns[:10]]
        more = ", ..." if len(columns) > 10 else ""
        warn_user(
            f"{count} of {len(X)} row(s) lie outside the range of the training inputs by more than a tenth of it, in "
            f"column(s) {', '.join(labels)}{more}; predictions fall back towards the prior there",
            ExtrapolationWarning,
        )


def warn_about_constants(
    X: NDArray[np.floating], y: NDArray[np.floating], names: NDArray[np.object_] | None, centred: bool
) -> None:
    """Say which columns, or that the target, do not vary."""
    constant = np.flatnonzero([bool((X[:, j] == X[0, j]).all()) for j in range(X.shape[1])])
    if len(constant):
        labels = [str(names[j]) if names is not None else str(j) for j in constant[:10]]
        more = ", ..." if len(constant) > 10 else ""
        warn_user(
            f"column(s) {', '.join(labels)}{more} of X do not vary and carry no information; they are ignored",
            ConstantDataWarning,
        )
    if bool((y == y[0]).all()):
        promise = f"; every prediction will be {y[0]:g}" if centred else f" (it is always {y[0]:g})"
        warn_user(f"the target y does not vary{promise}", ConstantDataWarning)


def capped_rank(rank: object, X: NDArray[np.floating], cap: bool, multiple: int = 1) -> int:
    """The rank asked for, or the number of distinct rows of X where that is smaller, as a multiple of ``multiple``."""
    wanted = check_rank(rank)
    if wanted < multiple:
        raise InvalidInputError(
            f"rank must be at least {multiple} for features that come in groups of {multiple}, found {wanted}"
        )
    distinct = _count_distinct_rows(X, wanted) if cap else wanted
    usable = max(multiple, min(wanted, distinct) // multiple * multiple)
    if distinct < wanted:
        warn_user(f"rank={wanted} is more than the {distinct} distinct row(s) of X; rank {usable} is used", RankWarning)
    return usable


def _count_distinct_rows(X: NDArray[np.floating], enough: int) -> int:
    """Number of distinct rows, counted only up to ``enough``."""
    seen: set[bytes] = set()
    for start in range(0, X.shape[0], 4096):
        block = np.ascontiguousarray(X[start : start + 4096]) + 0.0  # -0.0 equals 0.0
        seen.update(map(bytes, block.view(np.uint8).reshape(len(block), -1)))
        if len(seen) >= enough:
            return enough
    return len(seen)


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
    start = kernel_from_name(kernel)() if isinstance(kernel, str) else kernel
    d = len(standardiser.x_scale) if projected_dimension is None else projected_dimension
    plain = projected_dimension is None
    mean, units = (standardiser.x_mean, standardiser.x_scale) if plain else (np.zeros(d), np.ones(d))
    if given.length_scale is not None:
        start = start.replace(length_scale=per_dimension("length_scale", given.length_scale, d))
    if given.signal_variance is not None:
        start = start.with_signal_variance(check_positive("signal_variance", given.signal_variance))
    noise = (
        _DEFAULT_NOISE_RATIO
        if given.noise_variance is None
        else check_positive("noise_variance", given.noise_variance) / standardiser.y_scale**2
    )
    start = start.to_standardised(mean, units, standardiser.y_scale, default_length_scale)
    return StartingValues(start, noise)


def per_dimension(name: str, value: Any, dimension: int) -> NDArray[np.float64]:
    """Positive numbers, one per kernel dimension; a single one serves all."""
    return check_positives(name, value, dimension, f"the kernel works in {dimension} dimension(s)")
