"""What all estimators share: the scikit-learn contract around a fitted model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certgp.checks import check_count, check_fraction, check_levels
from certgp.data import Rows, Summary, check_finite, summarise
from certgp.data.outputs import OutputRows
from certgp.errors import InvalidInputError
from certgp.estimators import outputs as several
from certgp.estimators.certifying import certify_model
from certgp.estimators.fitting import Fitting, fitted_attributes, prepare_fitting, run_rounds
from certgp.estimators.held_out import explain_certificate
from certgp.estimators.notebook import notebook_view
from certgp.estimators.reporting import report
from certgp.estimators.sklearn_callbacks import SklearnCallbacks, fit_and_tell
from certgp.estimators.training_rows import curve_of_model, source_of
from certgp.estimators.validation import (
    check_engine,
    check_row_pair,
    has_outputs,
    leave_copies_out,
    load_inputs,
    load_rows,
    new_generator,
    new_torch_generator,
    warn_about_columns,
    warn_about_far_predictions,
)
from certgp.guarantees import Certificate
from certgp.guarantees.certify import DEFAULT_MAX_REFERENCE_RANK, Request
from certgp.guarantees.prediction_bounds import Confirm
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.methods import registered_name
from certgp.models import FittedModel, FittedOutputs
from certgp.training import Callback, OptimisationResult
from certgp.training.recipes import Fit, Settings, Trainer

Array = NDArray[np.float64]
ESTIMATORS: dict[str, type[GPRegressor]] = {}


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
class GPRegressor(SklearnCallbacks, RegressorMixin, BaseEstimator, ABC):
    """Gaussian-process regression in the units of the data given.

    A subclass declares its parameters, each with its type and default, and says what trains it (``trainer``); it
    becomes a dataclass by itself. The rest is here: validation, prediction in bounded memory, certificates, files.
    """

    standardize: bool
    calibrate: bool
    random_state: Any
    target_name_: str | None = None  # of the table behind the fit, where it had names
    table_: Any = None  # its layout
    encoding_: Any = None  # what was done to its columns, where they were not numbers
    method_: str | None = None  # the method that won, where several were compared
    choice_: str | None = None  # why, in words
    outputs_: tuple[Self, ...] | None = None  # of several outputs, a fitted estimator for each
    told: Callback | None = None  # of scikit-learn's callbacks, while a fit goes on
    _model: FittedModel | None = None
    _fitting: Fitting | None = None  # only while a fit goes on
    _together: FittedOutputs | None = None  # the models of ``outputs_``

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        ESTIMATORS[registered_name(cls)] = cls

    @abstractmethod
    def trainer(self, settings: Settings) -> Trainer:
        """What trains this model; making it refuses parameters that cannot work."""

    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn hyper-parameters from all rows and condition on them. X (N, D), y (N,), or rows that hold both.

        Several outputs are y (N, q), NaN where one is missing; ``outputs_`` then has a fitted estimator for each, and
        predictions have an axis of outputs (N, q).
        With ``sample_weight`` (N,) the noise variance of row i is ``noise_variance_`` / sample_weight_i; 0 leaves the
        row out. A row to predict has weight one.
        """
        before = dict(self.__dict__)
        try:
            return fit_and_tell(self, lambda: self._fit(X, y, sample_weight), X, y, sample_weight)
        except BaseException:  # a refused or interrupted fit leaves the estimator as it was, fitted or not
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: ArrayLike | Rows, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        several.check_parameters(self)
        self.target_name_ = self.table_ = self.encoding_ = self.outputs_ = self._together = None
        rows = load_rows(self, X, y, sample_weight, least_rows=2)
        if has_outputs(rows):
            return self.hold_outputs(several.fit_outputs(self, OutputRows.of(rows)))
        rows, summary = leave_copies_out(self, rows, summarise(rows))
        warn_about_columns([summary], self.standardize)
        self.publish(*run_rounds(partial(self._prepare, given=rows), rows, summary, self.calibrate))
        self._fitting = None
        return self

    def hold_outputs(self, parts: Sequence[Self]) -> Self:
        """Predict with these, one for each output, from now on; for whatever fits or loads them."""
        self.outputs_, self._model = tuple(parts), None
        self.__dict__.update(several.joint_attributes(parts))
        return self

    def _prepare(self, rows: Rows, summary: Summary, given: Rows) -> Fitting:
        known = self._fitting.warping if self._fitting else None  # of the round before
        self._fitting = prepare_fitting(self, rows, summary, given, None, known)
        return self._fitting

    def partial_fit(
        self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Condition on further rows; hyper-parameters, noise model, features, units stay. The first call is ``fit``."""
        if self._model is None and self.outputs_ is None:
            return self.fit(X, y, sample_weight)
        rows = load_rows(self, X, y, sample_weight, reset=False)
        if self.outputs_ is not None:
            several.extend_outputs(self.outputs_, OutputRows.of(rows))
            return self
        self._model, found = self._fitted(), summarise(rows)
        source, targets = source_of(self._model, rows), found.target_range()
        self._model = model = self._model.extended(source, *found.range(), self._engine(), targets)
        self.rank_ = model.process.rank
        return self

    def so_far(self) -> Self:
        """In a callback: the model that this fit would return if it stopped now; costs one pass over the rows."""
        process = None if self._fitting is None else self._fitting.trainer.process_so_far()
        if process is None or self._fitting is None:
            raise InvalidInputError("so_far() is for callbacks of one output, while a fit runs; then use the model")
        outcome = replace(OptimisationResult.none(), converged=False, reason="the fit was still running")
        model, fitting = copy(self), self._fitting
        model._fitting = None
        model.publish(fitting.model(process), Fit(process, outcome))
        return model

    def predict(
        self, X: ArrayLike | Rows, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
    ) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), optionally with standard deviations (n,) or the joint covariance (n, n); of several
        outputs (n, q), (n, q) and (n, n, q).

        ``include_noise=True`` speaks of new observations y, ``False`` of the function f behind them.
        """
        if return_std and return_cov:
            raise InvalidInputError("return_std and return_cov cannot both be True; the covariance holds the variances")
        model, rows = self._predictor(), self._load_inputs(X)
        if return_cov:
            return model.mean_and_covariance(rows, include_noise)
        observed = return_std and include_noise
        mean, variance = (model.observations(rows) if observed else model.latent(rows)).moments()
        warn_about_far_predictions(mean, [each.targets for each in self.models])
        return (mean, np.sqrt(variance)) if return_std else mean

    def distribution(self, X: ArrayLike | Rows) -> Any:
        """The predictive distribution of a new y at each row, in its units: a ``Mixture`` of Gaussians, or one each."""
        return self._predictor().observations(self._load_inputs(X))

    def predict_quantiles(self, X: ArrayLike | Rows, quantiles: ArrayLike) -> Array:
        """Quantiles of the predictive distribution of y: (n, number of quantiles), of several outputs (n, q, ...)."""
        found: Array = self.distribution(X).quantiles(check_levels("quantiles", quantiles))
        return found

    def predict_interval(self, X: ArrayLike | Rows, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends, (n,) or (n, q), of the central interval that holds y with probability ``coverage``."""
        half = 0.5 * check_fraction("coverage", coverage)
        ends = self.predict_quantiles(X, [0.5 - half, 0.5 + half])
        return ends[..., 0], ends[..., 1]

    def sample_y(
        self, X: ArrayLike | Rows, n_samples: int = 1, random_state: Any = 0, include_noise: bool = True
    ) -> Array:
        """Joint draws at the rows of X: (n, n_samples), of several outputs (n, q, n_samples)."""
        check_count("n_samples", n_samples)
        model, rows = self._predictor(), self._load_inputs(X)
        return model.sample(rows, n_samples, new_torch_generator(random_state), include_noise)

    def score(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictive means, 1 - (mean squared error) / (variance of y); of several outputs their mean."""
        if self.outputs_ is not None:
            return several.mean_score(self.outputs_, several.split_rows(self, X, y, sample_weight))
        if not isinstance(X, Rows):
            return float(super().score(X, y, sample_weight))
        self._load_inputs(rows := load_rows(self, X, y, sample_weight, reset=False))  # says what lies outside
        return self._fitted().score_sums(rows).r_squared

    def nlpd(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Any:
        """Mean negative log predictive density of y at X (n, D), in its units: lower is better; of outputs (q,).

        With ``sample_weight`` (n,) the weighted mean over rows, as in ``score``; each has the noise of weight one.
        """
        model, rows = self._predictor(), load_rows(self, X, y, sample_weight, reset=False)
        if isinstance(model, FittedOutputs):
            return several.score_outputs(model, OutputRows.of(rows))
        check_finite(rows)
        return model.score_sums(rows).nlpd

    def log_marginal_likelihood(self) -> Any:
        """Log density of the training targets under the fitted model, in the units of y; of several outputs (q,)."""
        return self._predictor().log_evidence()

    def certify(
        self,
        X: ArrayLike | Rows | None = None,
        *,
        reference_rank: int | None = None,
        tol: float | None = None,
        max_reference_rank: int = DEFAULT_MAX_REFERENCE_RANK,
        delta: float | None = None,
        probes: int = DEFAULT_PROBES,
        exact_solve: bool | Confirm = False,
        rows: tuple[ArrayLike, ...] | Rows | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Any:
        """How far this model is from the exact GP with the same hyper-parameters, with proof: a ``Certificate``, of
        several outputs a tuple of them, one each.

        Parameters
        ----------
        X : rows to predict; ``mean_error``, ``variance_lower`` and ``variance_upper`` then bound every prediction
        reference_rank : certify through a reference of this many features, from both sides. Without it, features that
            are dominated by the kernel (Mercer, Nystrom) certify themselves from their statistics, and others take a
            reference that doubles until its half-width is 1 % of the divergence
        tol : double the reference until the half-width of the KL divergence per row, or with X the error of the exact
            means in the units of y, is at most this
        max_reference_rank : where the doubling ends
        delta : where the rigorous interval of the KL divergence stays too wide, tighten it with ``probes`` random
            products by the exact kernel matrix, O(N^2); the statement then holds with probability 1 - delta
        exact_solve : where the reference is too weak for ``tol``, compute the exact means by conjugate gradients with
            streamed products by the exact kernel matrix, O(N^2) each. True prints the estimated cost to stderr and goes
            on, a function of the ``CostEstimate`` decides by returning True or False
        rows : the training rows, a pair (X, y), a triple (X, y, sample_weight) or a ``Rows`` object, needed after
            loading from a file for everything but the saved certificate; they are checked against what the model was
            conditioned on
        progress : told in words what is being done, where it may take long

        Notes
        -----
        Without arguments the best certificate that is known is returned: a saved or earlier one, where it is tighter.
        The exact GP is ``ExactGP(kernel=gp.kernel_, noise_variance=gp.noise_variance_, optimize=False)`` on the same
        rows with the same weights, also for rows outside the training range. Behind a warp, a projection or a network
        it is the exact GP on their outputs, and the sentence says so. An exact GP is its own truth.
        """
        request = Request(reference_rank, tol, max_reference_rank, delta, probes, exact_solve, progress)
        if self.outputs_ is not None:
            given = several.split_rows(self, *((None,) if rows is None else check_row_pair(rows)))
            return tuple(part._certify(X, own, request) for part, own in zip(self.outputs_, given, strict=True))
        return self._certify(X, rows, request)

    def _certify(self, X: Any, rows: Any, request: Request) -> Certificate:
        model, new = self._fitted(), None if X is None else self._load_inputs(X)
        found, self._model = certify_model(
            self, model, new, rows, request, self._engine(), partial(new_generator, self.random_state)
        )
        return found

    def rank_curve(self, X: ArrayLike | Rows | None = None, y: ArrayLike | None = None) -> Any:
        """Log evidence and guarantee for every rank up to the fitted one, at the fitted hyper-parameters: a
        ``RankCurve``, of several outputs a tuple of them.

        With validation rows X (n, D), y (n,) also their mean negative log predictive density at every rank.
        """
        if self.outputs_ is not None:
            given = several.split_rows(self, X, y)
            return tuple(part.rank_curve(own) for part, own in zip(self.outputs_, given, strict=True))
        return curve_of_model(self, self._fitted(), X, y)

    def save(self, path: str | Path, include_training_data: bool = False) -> None:
        """Write the fitted model to one file; ``certgp.load`` reads it.

        The file holds no training rows, unless the model cannot predict without them (an exact or a local GP): then
        they must be allowed into it.
        """
        from certgp.estimators.persistence import save

        save(self, Path(path), include_training_data)

    report = report
    explain = explain_certificate
    _html_repr = notebook_view  # of scikit-learn's notebook views

    def trainer_parameters(self) -> dict[str, Any]:
        """The parameters that concern whatever trains this model."""
        found = dict(self.get_params(deep=False))
        return found if self.told is None else found | {"callbacks": [*(self.callbacks or ()), self.told]}

    def _engine(self) -> Any:
        return check_engine(self.get_params(deep=False).get("engine", "local"))

    def publish(self, model: FittedModel, fit: Fit) -> None:
        """Set the fitted attributes, all in the user's units."""
        self.hold(model)
        self.__dict__.update(fitted_attributes(model, fit))

    @property
    def log_marginal_likelihood_(self) -> Any:
        """Log density of the training targets in the units of y; a local GP computes it when it is first asked for."""
        return self.log_marginal_likelihood()

    @property
    def row_weights_(self) -> Any:
        """Weights of the rows of the fit (N,), those of weight zero left out: ``sample_weight`` times what
        likelihood="student" found of each row. None where all are one, and after loading or ``partial_fit``.
        """
        return self._of_outputs(FittedModel.row_weights)

    @property
    def noise_model_(self) -> Any:
        """How noise depends on the input, or the Student-t noise, in standardised units; None where it is Gaussian and
        constant. Of several members, or outputs, one each.
        """
        return self._of_outputs(FittedModel.noise_models)

    @property
    def noise_gain_(self) -> Any:
        """What noise(x) gains on rows not fitted to, and whether it is used; None where it was not tried."""
        return self._of_outputs(lambda model: model.process.noise_gain)

    def _of_outputs(self, value: Callable[[FittedModel], object]) -> object:
        found = tuple(value(model) for model in self.models)
        return found[0] if self.outputs_ is None else found

    @property
    def warp_(self) -> Any:
        """Power of each column (D,), one where it is left alone, where inputs were warped; else None."""
        return self._of_outputs(lambda model: model.standardiser.powers)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of the fit; none where they had none."""
        return tuple(str(name) for name in vars(self).get("feature_names_in_", ()))

    @property
    def n_rows_(self) -> Any:
        """Number of rows that the model was conditioned on."""
        return self._of_outputs(lambda model: model.process.n_rows)

    @property
    def certifies_itself(self) -> bool:
        """Can predictions be certified without reading the training rows again?"""
        return all(model.certifies_itself for model in self.models)

    @property
    def needs_training_data(self) -> bool:
        """Does the model predict from the training rows themselves, so that a file must hold them?"""
        return any(model.process.holds_rows for model in self.models)

    def hold(self, model: FittedModel) -> None:
        """Predict with this model from now on; for whatever fits or loads one."""
        self._model = model
        self.kernel_ = model.kernel

    def _fitted(self) -> FittedModel:
        """The fitted model, or scikit-learn's error."""
        check_is_fitted(self)
        if self.outputs_ is not None:
            raise InvalidInputError(f"this belongs to one of {len(self.outputs_)} outputs; ask outputs_[j]")
        if self._model is None:
            raise InvalidInputError("this estimator has no fitted model; call fit first")
        return self._model

    @property
    def models(self) -> tuple[FittedModel, ...]:
        """The fitted model of each output; one where y was (N,)."""
        if self.outputs_ is None:
            return (self._fitted(),)
        return tuple(part._fitted() for part in self.outputs_)

    def _predictor(self) -> FittedModel | FittedOutputs:
        models = self.models
        if self.outputs_ is None:
            return models[0]
        if self._together is None or any(a is not b for a, b in zip(models, self._together.models, strict=True)):
            self._together = FittedOutputs(models)
        return self._together

    def _load_inputs(self, X: ArrayLike | Rows) -> Rows:
        """Rows to predict, checked; those outside the training range are announced."""
        model = self._predictor()
        return load_inputs(self, X, model.lower, model.upper, model.returns_to_prior)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
