"""A fitted model on rows it has not learned from, beside simple models on the same rows."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.data import Rows
from certgp.data.rows import read_target
from certgp.errors import ExtrapolationWarning, InvalidInputError, NotCertifiableError
from certgp.estimators.simple_models import MOST_ROWS, predict_simple_models
from certgp.estimators.validation import OutsideRange, check_inputs
from certgp.gp import Mixture
from certgp.gp.log_mixture import LogMixture
from certgp.guarantees import Certificate, Explanation, RankCurve, Yardstick, explain
from certgp.models.outputs import OutputMixtures
from certgp.report import Card, Predicted

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor


def predict_held_out(model: GPRegressor, rows: Rows) -> Predicted:
    """What a model says of rows that hold their target."""
    y = read_target(rows)
    y = np.exp(y) if models_log(model) else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the card counts these rows
        found = distribution_of_target(model, rows)
    mean, variance = found.moments()
    skewed = models_log(model)
    return Predicted("this model", y, mean, np.sqrt(variance), found.log_density(y), found.cdf(y), skewed)


def models_log(model: GPRegressor) -> bool:
    """Has the model learned the logarithm of its target?"""
    return model.encoding_ is not None and model.encoding_.log_target


def modelled_target(model: GPRegressor) -> str:
    """What the model has learned, in words: its target, or the logarithm of it."""
    target = model.target_name_ or "y"
    return f"log({target})" if models_log(model) else target


def scatter_words(model: GPRegressor, digits: int = 3) -> str:
    """The standard deviation of observations around their predictions, in words where that of log(y) was learned."""
    noise = float(np.sqrt(model.noise_variance_ * model.noise_scale_))
    if not models_log(model):
        return f"{noise:.{digits}g}"
    return f"{noise:.{digits}g} in {modelled_target(model)}, a factor of {np.exp(noise):.3g} up or down"


def distribution_of_target(model: GPRegressor, rows: Rows) -> Any:
    """The predictive distribution of a new y in its own units, also where the model has learned log(y)."""
    found = model.distribution(rows)
    if not models_log(model):
        return found
    if isinstance(found, OutputMixtures):
        return OutputMixtures([LogMixture(each) for each in found.mixtures if isinstance(each, Mixture)])
    return LogMixture(found)


def count_outside(model: GPRegressor, rows: Rows) -> OutsideRange:
    """How many rows lie outside the range of the training inputs, and in which columns; NaN is refused."""
    fitted = model.models[0]
    return check_inputs(rows, fitted.lower, fitted.upper, fitted.process.returns_to_prior)


def make_card(model: GPRegressor, rows: Rows, train: Rows | None, seed: int = 0) -> Card:
    """Scores on ``rows``, beside baselines that learn from ``train`` where it is known."""
    predicted, outside = predict_held_out(model, rows), count_outside(model, rows).outside
    if train is None:
        return Card(predicted, (), outside)
    inputs = np.asarray(rows.take(slice(None))[0], dtype=np.float64)
    baselines, learned = predict_simple_models(train, inputs, read_target(rows), seed)
    if models_log(model):  # they learn log(y) too
        baselines = tuple(each.exponential() for each in baselines)
    return Card(predicted, baselines, outside, learned if train.n_rows > MOST_ROWS else None)


def find_rank_curve(model: GPRegressor, rows: Rows | None = None) -> RankCurve | None:
    """What each rank gives; None for models that have none."""
    with suppress(NotCertifiableError):
        found: RankCurve = model.rank_curve(rows)
        return found
    return None


def explain_certificate(
    self: GPRegressor,
    certificate: Certificate,
    X: ArrayLike | Rows | None = None,
    *,
    coverage: float | None = None,
    rows: str = "these {} rows",
) -> Explanation:
    """A certificate of this model in words, in the units of y and of the noise; ``print(gp.explain(c).text())``.

    Parameters
    ----------
    certificate : of this model, from ``certify``
    X : its rows, where it speaks of single predictions
    coverage : share of held-out rows in their 95 % interval, where that was measured, to be told beside it
    rows : what to call X
    """
    if self.outputs_ is not None:
        raise InvalidInputError(
            f"explain is for one output, and this model has {len(self.outputs_)}: call outputs_[j].explain with the "
            "j-th of the certificates"
        )
    latent = None
    if X is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            latent = np.square(self.predict(X, return_std=True, include_noise=False)[1])
    return explain(certificate, replace(yardstick_of(self, latent, coverage), rows=rows))


def yardstick_of(
    model: GPRegressor, latent: NDArray[np.float64] | None = None, coverage: float | None = None
) -> Yardstick:
    """The scales of a model, in the units of y."""
    noise = float(np.sqrt(model.noise_variance_ * model.noise_scale_))
    prior = float(np.sqrt(float(model.kernel_.signal_variance)))
    return Yardstick(noise, prior, modelled_target(model), latent, coverage, find_rank_curve(model))
