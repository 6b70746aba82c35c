"""Whether a fit warps its inputs, and how: what ``warp`` asks for, on the rows of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certgp.checks import check_positive
from certgp.data import Rows, StandardisedRows, Standardiser
from certgp.data.warp import Warp
from certgp.errors import InvalidInputError
from certgp.training.recipes import AUTOMATIC, Settings
from certgp.training.recipes.warping import COMPARED_ROWS, WarpGain, compare_warp
from certgp.training.stopping import StopRule

_SAMPLE_ROWS = 5_000  # that powers are learned from
_SKEWED = 0.3  # |power - 1| from which on a column is called skewed
_SHARE = 0.1  # of a time limit, for the comparison
_COMPARED_OUTPUTS = 4
_BENDABLE = ("gaussian", "matern12", "matern32", "matern52", "rational_quadratic")  # kernels by name alone


@dataclass(frozen=True, eq=False)
class Warping:
    """The warp of a fit, if any, and why, in words."""

    warp: Warp | None = None
    words: str | None = None

    def applied(self, settings: Settings) -> Settings:
        """The settings of a fit, with the warp among their units."""
        units = replace(settings.standardiser, warp=self.warp)
        return settings if self.warp is None else replace(settings, standardiser=units)


def check_warp(parameters: Mapping[str, Any]) -> None:
    """Refuse values of ``warp`` that cannot work."""
    warp = parameters.get("warp", False)
    if not isinstance(warp, bool) and warp != AUTOMATIC:
        raise InvalidInputError(f"warp must be True, False or 'auto', found {warp!r}")
    if warp is True and not parameters["standardize"]:
        raise InvalidInputError(
            "warp=True bends standardised inputs, and standardize=False leaves X as it is; use standardize=True or "
            "warp=False"
        )


def choose_warping(
    estimator: BaseEstimator, settings: Settings, outputs: Sequence[Rows], before: Warping | None = None
) -> Warping:
    """What an estimator's ``warp`` asks for on the rows of one output, or of several with the same features; where it
    was decided ``before``, on rows of other weights, that stays.
    """
    parameters = estimator.get_params(deep=False)
    wanted = parameters.get("warp", False)
    if not wanted or not parameters["standardize"]:
        return Warping()
    if before is not None and before.warp is None:
        return before
    is_open = wanted == AUTOMATIC and before is None
    if is_open and _speaks_of_units(settings, parameters):
        return Warping()
    warp = fit_warp(settings.standardiser, outputs[0])
    if warp is None:
        return Warping(None, "Inputs are not warped: no column has a shape to straighten.")
    if not is_open:
        return Warping(warp, "Inputs are warped." if before is None else before.words)
    if warp.strength < _SKEWED:
        return Warping(None, "Inputs are not warped: no column is clearly skewed.")
    return _decide(settings, outputs, warp, parameters.get("max_seconds"))


def _speaks_of_units(settings: Settings, parameters: Mapping[str, Any]) -> bool:
    """Did the user say something in the units of X: lengths, periods, a line?"""
    given = settings.lengths_are_given or parameters.get("input_scale") is not None
    return given or not settings.optimize or settings.kernel not in _BENDABLE


def fit_warp(units: Standardiser, rows: Rows) -> Warp | None:
    """The warp that some of these rows ask for; the same ones whatever the seed of a fit. None where it is none."""
    warp = Warp.fit(StandardisedRows(rows, units).sample(_SAMPLE_ROWS, np.random.default_rng(0)).X.numpy())
    return None if warp.is_identity else warp


def _decide(settings: Settings, outputs: Sequence[Rows], warp: Warp, max_seconds: float | None) -> Warping:
    """Compare with and without; a resumed fit must decide alike, so that with a checkpoint no clock is looked at."""
    limit = None
    if max_seconds is not None and settings.checkpoint is None:
        limit = StopRule(_SHARE * check_positive("max_seconds", max_seconds))
    found = []
    for rows in outputs[:_COMPARED_OUTPUTS]:
        some = StandardisedRows(rows, settings.standardiser).sample(COMPARED_ROWS, settings.new_generator())
        gain = compare_warp(settings, some, warp, limit)
        if gain is None:
            return Warping(None, "Inputs are not warped: there were too few rows, or too little time, to compare.")
        found.append(gain)
    gain = WarpGain.join(found)
    what = (
        f"a power transform of {int(np.sum(warp.power != 1.0))} of {len(warp.power)} columns gains {gain.gain:.3g} "
        f"in NLPD (standard error {gain.standard_error:.2g}) on {gain.rows:,} training rows held out from a quick "
        "GP"
    )
    return (
        Warping(warp, f"Inputs are warped: {what}.") if gain.pays else Warping(None, f"Inputs are not warped: {what}.")
    )
