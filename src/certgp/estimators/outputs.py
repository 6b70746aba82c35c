"""Several outputs behind one estimator: a fitted estimator each, with the same features where the method allows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from certgp.checks import check_flag, check_positive
from certgp.data import Rows, StandardisedRows, Standardiser
from certgp.data.outputs import OutputRows, OutputSource, TargetRows
from certgp.errors import InvalidInputError
from certgp.estimators.fitting import make_settings, prepare_fitting, units_of
from certgp.estimators.validation import load_rows, warn_about_columns
from certgp.estimators.warping import check_warp, choose_warping
from certgp.models import FittedModel, FittedOutputs
from certgp.training.recipes import AUTOMATIC, DTYPES, Fit

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

G = TypeVar("G", bound="GPRegressor")
Array = NDArray[np.float64]
OWN = ("noise", "noise_variance", "signal_variance")  # parameters of which each output may have its own
OF_INPUTS = ("n_features_in_", "feature_names_in_")


def varies_by_output(value: object) -> bool:
    """Is this parameter given as one value for each output?"""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def check_parameters(estimator: GPRegressor) -> None:
    """Refuse parameters that cannot work, before the data are looked at: making a trainer checks them. Those given for
    each output wait until there are outputs.
    """
    given = estimator.get_params(deep=False)
    for name, parameter in signature(type(estimator)).parameters.items():
        if isinstance(parameter.default, bool) and name != "warp":
            check_flag(name, given[name])
    check_warp(given)
    if not any(varies_by_output(given.get(name)) for name in OWN):
        estimator.trainer(make_settings(estimator, estimator.trainer_parameters(), Standardiser.identity(0)))


def split_rows(
    estimator: GPRegressor, X: ArrayLike | Rows | None, y: ArrayLike | None = None, weight: ArrayLike | None = None
) -> list[Rows | None]:
    """Rows of each output of a fitted estimator, from rows of all; none where none are given."""
    if X is None and y is None:
        return [None] * len(estimator.models)
    return list(OutputRows.of(load_rows(estimator, X, y, weight, reset=False)).split())


def parameters_of_output(parameters: Mapping[str, Any], j: int, count: int) -> dict[str, Any]:
    """The parameters with which output j is fitted."""
    own = dict(parameters)
    for name in OWN:
        value: Any = parameters.get(name)
        if not varies_by_output(value):
            continue
        if len(value) != count:
            raise InvalidInputError(f"{name} has {len(value)} values and y has {count} outputs; give one each, or one")
        own[name] = value[j]
    return own


def share_features(parts: Sequence[GPRegressor]) -> bool:
    """Can these outputs be fitted together? Not where each must find its own rank, weights of rows or held-out rows."""
    first = parts[0]
    settings = make_settings(first, first.trainer_parameters(), Standardiser.identity(0))
    alone = settings.rank == AUTOMATIC or settings.is_student or first.calibrate
    return first.trainer(settings).shares_outputs and not alone


def fit_outputs(estimator: G, rows: OutputRows) -> tuple[G, ...]:
    """A fitted estimator for each output: together where they can share features, else one after the other."""
    rows.check_enough()
    started = time.perf_counter()
    given, count = estimator.get_params(deep=False), rows.count
    parts = tuple(type(estimator)(**parameters_of_output(given, j, count)) for j in range(count))
    if share_features(parts):
        for part, (model, fit) in zip(parts, fit_together(parts, rows), strict=True):
            part.publish(model, fit)
    else:
        for j, part in enumerate(parts):
            if given.get("checkpoint") is not None:  # fits of their own have files of their own
                part.set_params(checkpoint=f"{given['checkpoint']}.{j}")
            if given.get("max_seconds") is not None:
                left = check_positive("max_seconds", given["max_seconds"]) - (time.perf_counter() - started)
                part.set_params(max_seconds=max(left, 1e-3) / (count - j))
            part.fit(rows.output(j))
    for part in parts:
        part.__dict__.update({name: vars(estimator)[name] for name in OF_INPUTS if name in vars(estimator)})
    return parts


def fit_together(parts: Sequence[GPRegressor], rows: OutputRows) -> list[tuple[FittedModel, Fit]]:
    """Models of all outputs with the same features, learned from the sum of their evidences."""
    standardize, summaries = parts[0].standardize, rows.summarise()
    warn_about_columns(summaries, standardize)
    units = [units_of(summary, standardize) for summary in summaries]
    first = make_settings(parts[0], parts[0].trainer_parameters(), units[0], summaries[0])
    warping = choose_warping(parts[0], first, rows.split())
    units = [replace(each, warp=warping.warp) for each in units]
    blank = TargetRows(rows.inputs, np.zeros(len(rows.Y)))
    dtype = DTYPES[parts[0].get_params(deep=False).get("dtype", "float64")]
    Y = np.stack([each.target(rows.Y[:, j]) for j, each in enumerate(units)], 1)
    source = OutputSource(StandardisedRows(blank, units[0], dtype), torch.from_numpy(Y))
    fittings = []
    for j, (part, summary) in enumerate(zip(parts, summaries, strict=True)):
        mine = rows.output(j)
        fittings.append(prepare_fitting(part, mine, summary, mine, source.output(j), warping))
    found = fittings[0].trainer.fit_outputs(source, [each.settings for each in fittings])
    for fit, fitting in zip(found.fits(), fittings, strict=True):
        fitting.trainer.decide_noise(fit.process, fitting.source, rows.count)
    pairs = zip(found.fits(), fittings, strict=True)
    return [(fitting.model(fit.process), fitting.told(fit)) for fit, fitting in pairs]


def extend_outputs(parts: Sequence[GPRegressor], rows: OutputRows) -> None:
    """Condition each output on those of further rows at which it was observed."""
    for part, more in zip(parts, rows.split(), strict=True):
        if more.n_rows:
            part.partial_fit(more)


def mean_score(parts: Sequence[GPRegressor], rows: Sequence[Rows | None]) -> float:
    """R^2 of each output on its rows, and the mean of these, as scikit-learn has it."""
    return float(np.mean([part.score(own) for part, own in zip(parts, rows, strict=True) if own is not None]))


def joint_attributes(parts: Sequence[GPRegressor]) -> dict[str, Any]:
    """Fitted attributes of an estimator of several outputs."""
    ranks = [part.rank_ for part in parts]
    found = {
        "kernel_": tuple(part.kernel_ for part in parts),
        "noise_variance_": np.array([part.noise_variance_ for part in parts]),
        "noise_scale_": np.array([part.noise_scale_ for part in parts]),
        "rank_": ranks[0] if len(set(ranks)) == 1 else np.array(ranks),
        "n_iter_": max(part.n_iter_ for part in parts),
        "converged_": all(part.converged_ for part in parts),
        "stop_reason_": "; ".join(dict.fromkeys(part.stop_reason_ for part in parts)),
        "history_": parts[0].history_,
        "trials_": parts[0].trials_,
    }
    if parts[0].method_ is None:
        return found
    return found | {
        "method_": ", ".join(str(part.method_) for part in parts),
        "choice_": "\n".join(f"output {j}: {part.choice_}" for j, part in enumerate(parts)),
    }


def name_outputs(model: GPRegressor) -> tuple[str, ...]:
    """What the outputs of a model are called, their columns or else their numbers; each is told its own."""
    assert model.outputs_ is not None
    encoding = model.encoding_
    names = tuple(map(str, range(len(model.outputs_)))) if encoding is None else encoding.targets
    for name, part in zip(names, model.outputs_, strict=True):
        part.target_name_ = name if encoding is not None else f"output {name}"
        part.encoding_ = None if encoding is None else replace(encoding, targets=(name,))
    return names


def score_outputs(model: FittedOutputs, rows: OutputRows) -> Array:
    """Mean negative log predictive density of each output (q,) over the rows at which it was observed."""
    losses = -model.observations(rows.inputs).log_density(rows.Y)
    weights = rows.inputs.weights(slice(None))
    given = np.ones(len(losses)) if weights is None else weights
    pairs = zip(losses.T, rows.observed.T, strict=True)
    return np.array([np.average(loss[seen], weights=given[seen]) if seen.any() else np.nan for loss, seen in pairs])
