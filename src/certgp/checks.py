"""Checks of single arguments; the errors name the argument, what was found and what it must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.errors import InvalidInputError


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """One of the named strings."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, choices))}, found {value!r}")
    return value


def check_flag(name: str, value: object) -> bool:
    """True or False; not a word, which would count as true whatever it says."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name} must be True or False, found {value!r}")
    return bool(value)


def check_count(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInputError(f"{name} must be a whole number of at least {least}, found {value!r}")
    return int(value)


def check_rank(rank: object) -> int:
    """A positive whole number, or an error that names the argument."""
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or rank < 1:
        raise InvalidInputError(f"rank must be a positive whole number, found {rank!r}")
    return int(rank)


_LARGEST_USUAL_REFERENCE = 5_000  # seconds, however few rows there are
_LARGEST_REFERENCE_PER_ROW = 4
_LARGEST_REFERENCE = 20_000  # its Gram matrices have gigabytes


def check_reference_rank(name: str, value: object, n_rows: int) -> int:
    """A reference that costs no more than a few exact GPs of these rows, and whose matrices fit into memory."""
    rank = check_count(name, value)
    largest = min(_LARGEST_REFERENCE, max(_LARGEST_USUAL_REFERENCE, _LARGEST_REFERENCE_PER_ROW * n_rows))
    if rank > largest:
        raise InvalidInputError(
            f"{name} is {rank}, which for {n_rows} training row(s) would cost more than the exact GP itself, or more "
            f"memory than there is; use at most {largest}"
        )
    return rank


def numbers(name: str, value: Any, requirement: str) -> NDArray[np.float64]:
    """A float64 array of what was given, or an error that names the argument and what it must be."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must {requirement}, found {value!r}") from error


def one_number(name: str, value: Any, requirement: str, holds: Callable[[float], bool]) -> float:
    """A single number of which ``holds`` is true."""
    number = numbers(name, value, requirement)
    if number.ndim > 0 or not holds(float(number)):
        raise InvalidInputError(f"{name} must {requirement}, found {value!r}")
    return float(number)


def check_levels(name: str, value: Any) -> NDArray[np.float64]:
    """Probabilities (m,) strictly between 0 and 1."""
    levels = np.atleast_1d(numbers(name, value, "lie strictly between 0 and 1"))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise InvalidInputError(f"{name} must lie strictly between 0 and 1, found {value!r}")
    return levels


def check_fraction(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return one_number(name, value, "lie strictly between 0 and 1", lambda x: 0.0 < x < 1.0)


def check_positive(name: str, value: Any) -> float:
    """A positive finite number."""
    return one_number(name, value, "be positive and finite", lambda x: 0.0 < x < np.inf)


def check_positives(name: str, value: Any, dimension: int, where: str) -> NDArray[np.float64]:
    """Positive finite numbers, one per dimension; a single one serves all. ``where`` says what has that dimension."""
    scales = numbers(name, value, "be positive and finite")
    if scales.ndim > 1 or (scales.ndim == 1 and len(scales) not in (1, dimension)):
        raise InvalidInputError(f"{name} has {scales.size} numbers but {where}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise InvalidInputError(f"{name} must be positive and finite, found {value!r}")
    return np.broadcast_to(scales, (dimension,)).copy()
