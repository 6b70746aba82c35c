"""Several outputs behind one estimator: one fitted estimator each, with the same features where the method allows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Rows, StandardisedRows, Standardiser
from certgp.data.outputs import OutputRows, OutputSource, TargetRows
from certgp.errors import InvalidInputError
from certgp.estimators.fitting import Fitting, make_settings
from certgp.estimators.validation import new_generator, warn_about_constants, warn_about_far_numbers
from certgp.models import FittedModel, FittedOutputs
from certgp.training.recipes import AUTOMATIC, DTYPES, Fit

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

Array = NDArray[np.float64]
OWN = ("noise", "noise_variance", "signal_variance")  # parameters of which each output may have its own


def varies_by_output(value: object) -> bool:
    """Is this parameter given as one value for each output?"""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def parameters_of_output(parameters: Mapping[str, Any], j: int, count: int) -> dict[str, Any]:
    """The parameters with which output j is fitted."""
    own = dict(parameters)
    for name in OWN:
        value = parameters.get(name)
        if not varies_by_output(value):
            continue
        if len(value) != count:
            raise InvalidInputError(f"{name} has {len(value)} values and y has {count} outputs; give one each, or one")
        own[name] = value[j]
    if own.get("checkpoint") is not None:
        own["checkpoint"] = f"{own['checkpoint']}.{j}"  # fits of their own have files of their own
    return own


def share_features(parts: Sequence[GPRegressor]) -> bool:
    """Can these outputs be fitted together? Not where each must find its own rank, weights of rows or held-out rows."""
    first = parts[0]
    parameters = first.trainer_parameters()
    settings = make_settings(first, parameters, Standardiser.identity(0))
    alone = settings.rank == AUTOMATIC or settings.is_student or first.calibrate
    return first.trainer(settings).shares_outputs and not alone


def fit_together(parts: Sequence[GPRegressor], rows: OutputRows, checkpoint: Any) -> list[tuple[FittedModel, Fit]]:
    """Models of all outputs with the same features, learned from the sum of their evidences."""
    names = [str(j) for j in range(rows.count)]
    summaries = rows.summarise(names)
    for summary in summaries:
        warn_about_constants(summary, parts[0].standardize)
    if parts[0].standardize:
        warn_about_far_numbers(summaries[0])
    fittings = []
    for j, (part, summary) in enumerate(zip(parts, summaries, strict=True)):
        scaled = Standardiser.of(summary)
        identity = Standardiser.identity(len(scaled.x_scale), scaled.ignored)
        units = scaled if part.standardize else identity
        parameters = part.trainer_parameters() | {"checkpoint": checkpoint}
        settings = make_settings(part, parameters, units, summary)
        mine = rows.output(j)
        fittings.append((mine, summary, settings, part.trainer(settings)))
    settings = fittings[0][2]
    blank = TargetRows(rows.inputs, np.zeros(len(rows.Y)))
    inputs = StandardisedRows(blank, settings.standardiser, DTYPES[settings.dtype])
    Y = np.stack([each[2].standardiser.target(rows.Y[:, j]) for j, each in enumerate(fittings)], 1)
    source = OutputSource(inputs, torch.from_numpy(Y))
    found = fittings[0][3].fit_outputs(source, [each[2] for each in fittings])
    models = []
    for j, (fit, (mine, summary, own, trainer)) in enumerate(zip(found.fits(), fittings, strict=True)):
        lower, upper = summary.range()
        model = FittedModel(fit.process, own.standardiser, lower, upper, own.dtype != "float32", None, mine)
        trainer.decide_noise(model.process, source.output(j))
        models.append((model, fit))
    return models


def score_outputs(model: FittedOutputs, rows: OutputRows) -> Array:
    """Mean negative log predictive density of each output (q,) over the rows at which it was observed."""
    losses = -model.observations(rows.inputs).log_density(rows.Y)
    weights = rows.inputs.weights(slice(None))
    given = np.ones(len(losses)) if weights is None else weights
    pairs = zip(losses.T, rows.observed.T, strict=True)
    return np.array([np.average(loss[seen], weights=given[seen]) if seen.any() else np.nan for loss, seen in pairs])
