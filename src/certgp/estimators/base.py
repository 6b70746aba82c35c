"""What all estimators share: the scikit-learn contract around a fitted process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from certgp.data import PickedRows, Rows, Standardiser, Summary, check_finite, summarise
from certgp.data.rows import read_target
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError
from certgp.estimators.validation import (
    check_count,
    check_flag,
    check_fraction,
    check_inputs,
    generator,
    load_inputs,
    load_rows,
    numbers,
    warn_about_constants,
)
from certgp.gp import Box, GaussianProcess, mixture_log_density, mixture_moments, mixture_quantiles, noise_scale
from certgp.gp.process import check_dense
from certgp.guarantees import Certificate, RankCurve
from certgp.kernels import Kernel
from certgp.training import Callback, History, OptimisationResult

Array = NDArray[np.float64]
_CALIBRATION_SHARE = 0.1  # of the rows
_FEWEST_CALIBRATION_ROWS = 10


class GPRegressor(RegressorMixin, BaseEstimator, ABC):
    """Gaussian-process regression in the units of the data given.

    Subclasses say how a process is fitted (``_fit_process``), extended (``_extend_process``) and described; everything
    here is the same for all of them: validation, standardisation, prediction in bounded memory.
    """

    _process: GaussianProcess
    _standardiser: Standardiser
    _range: tuple[Array, Array]  # least and largest training input per column, in the user's units
    _summary: Summary  # of the rows of the last fit
    standardize: bool
    calibrate: bool = False
    random_state: Any
    verbose: int
    callbacks: Sequence[Callback] | None
    _calibrates_itself: ClassVar[bool] = False  # does ``_fit_process`` hold rows back of its own accord?

    def fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None) -> Self:
        """Learn hyper-parameters from all rows and condition on them. X (N, D), y (N,), or rows that hold both."""
        before = dict(self.__dict__)
        try:
            return self._fit(X, y)
        except BaseException:  # a refused or interrupted fit leaves the estimator as it was, fitted or not
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: ArrayLike | Rows, y: ArrayLike | None) -> Self:
        self._check_flags()
        self._check_parameters()
        for of_an_earlier_table in ("target_name_", "table_"):
            self.__dict__.pop(of_an_earlier_table, None)
        rows = load_rows(self, X, y, least_rows=2)
        self._summary = summarise(rows)
        warn_about_constants(self._summary, self.standardize)
        fitted = Standardiser.of(self._summary)
        unscaled = Standardiser.identity(rows.n_columns, fitted.ignored)
        self._standardiser = fitted if self.standardize else unscaled
        self._range = self._summary.range()
        own = not self.calibrate or self._calibrates_itself
        self._process, outcome = (self._fit_process if own else self._fit_calibrated)(rows)
        self._box_in()
        self._publish(outcome)
        return self

    def _box_in(self) -> None:
        """Tell the process the range of the training inputs."""
        lower, upper = (torch.from_numpy(self._standardiser.inputs(end[None])[0]) for end in self._range)
        for member in self._process.members:
            member.box = Box(lower, upper)

    def _fit_calibrated(self, rows: Rows) -> tuple[GaussianProcess, OptimisationResult]:
        """Fit nine tenths of the rows, scale the predictive noise to suit the last tenth, condition on these too."""
        order = generator(self.random_state).permutation(rows.n_rows)
        count = round(_CALIBRATION_SHARE * rows.n_rows)
        if count < _FEWEST_CALIBRATION_ROWS:
            raise InvalidInputError(
                f"calibrate=True holds back a tenth of the rows and needs at least {_FEWEST_CALIBRATION_ROWS} there, "
                f"but {rows.n_rows} rows give {count}; use calibrate=False or more rows"
            )
        held_out = PickedRows(rows, np.sort(order[:count]))
        self._process, outcome = self._fit_process(PickedRows(rows, np.sort(order[count:])))
        self.rank_ = self._rank()
        (mean,), (variance,) = self._member_moments(held_out)
        noise = self._process.noise_variance * self._standardiser.y_scale**2
        self._process.noise_scale = noise_scale(read_target(held_out), mean, variance, noise)
        return self._extend_process(held_out), outcome

    def partial_fit(self, X: ArrayLike | Rows, y: ArrayLike | None = None) -> Self:
        """Condition on further rows; hyper-parameters, features and standardisation stay. The first call is ``fit``."""
        if not hasattr(self, "_process"):
            return self.fit(X, y)
        rows = load_rows(self, X, y, reset=False)
        summary = summarise(rows)
        self._process = self._extend_process(rows)
        (lower, upper), (more_lower, more_upper) = self._range, summary.range()
        self._range = (np.minimum(lower, more_lower), np.maximum(upper, more_upper))
        self._box_in()
        self.rank_ = self._rank()
        self.log_marginal_likelihood_ = self.log_marginal_likelihood()
        return self

    def predict(
        self, X: ArrayLike | Rows, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
    ) -> Array | tuple[Array, Array]:
        """Predictive mean (n,), optionally with standard deviations (n,) or the joint covariance (n, n).

        ``include_noise=True`` speaks of new observations y, ``False`` of the function f behind them.
        """
        if return_std and return_cov:
            raise InvalidInputError(
                "return_std and return_cov cannot both be asked for; the covariance holds the variances"
            )
        rows = self._validated(X)
        if return_cov:
            return self._mean_and_covariance(rows, include_noise)
        means, variances = self._member_moments(rows)
        mean, variance = mixture_moments(means, variances + self._member_noise() if include_noise else variances)
        return (mean, np.sqrt(variance)) if return_std else mean

    def predict_quantiles(self, X: ArrayLike | Rows, quantiles: ArrayLike) -> Array:
        """Quantiles of the predictive distribution of y: (n, number of quantiles)."""
        levels = np.atleast_1d(numbers("quantiles", quantiles, "lie strictly between 0 and 1"))
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"quantiles must lie strictly between 0 and 1, found {quantiles!r}")
        means, variances = self._member_moments(self._validated(X))
        return mixture_quantiles(means, variances + self._member_noise(), levels)

    def predict_interval(self, X: ArrayLike | Rows, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends, each (n,), of the central interval that holds a new y with probability ``coverage``."""
        half = 0.5 * check_fraction("coverage", coverage)
        ends = self.predict_quantiles(X, [0.5 - half, 0.5 + half])
        return ends[:, 0], ends[:, 1]

    def sample_y(
        self, X: ArrayLike | Rows, n_samples: int = 1, random_state: Any = 0, include_noise: bool = True
    ) -> Array:
        """Joint draws at the rows of X: (n, n_samples)."""
        check_count("n_samples", n_samples)
        rows = self._validated(X)
        source = torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))
        draw = self._process.sample_observations if include_noise else self._process.sample
        X = self._tensor(rows.take(slice(None))[0])
        return self._standardiser.mean_to_user(draw(X, n_samples, source).numpy())

    def score(self, X: ArrayLike | Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictive means: 1 - (mean squared error) / (variance of y)."""
        target = read_target(load_rows(self, X, y, reset=False)) if isinstance(X, Rows) else y
        return float(super().score(X, target, sample_weight))

    def nlpd(self, X: ArrayLike | Rows, y: ArrayLike | None = None) -> float:
        """Mean negative log predictive density of y (n,) at X (n, D), in the units of y; lower is better."""
        check_is_fitted(self)
        rows = load_rows(self, X, y, reset=False)
        check_finite(rows)
        means, variances = self._member_moments(rows)
        return -float(np.mean(mixture_log_density(read_target(rows), means, variances + self._member_noise())))

    def log_marginal_likelihood(self) -> float:
        """Log density of the training targets under the fitted model, in the units of y."""
        check_is_fitted(self)
        return self._user_evidence(self._log_evidence())

    @abstractmethod
    def certify(self, X: ArrayLike | Rows | None = None) -> Certificate:
        """How far this model is from the exact GP with the same hyper-parameters, with proof."""

    @abstractmethod
    def rank_curve(self) -> RankCurve:
        """Log evidence, and where it exists the guarantee, for every rank up to the fitted one."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file without its training data; ``certgp.load`` reads it."""
        from certgp.estimators.persistence import save

        check_is_fitted(self)
        save(self, Path(path))

    def _check_flags(self) -> None:
        """Refuse anything but True and False for parameters that are one of them by default."""
        for name, parameter in signature(type(self)).parameters.items():
            if isinstance(parameter.default, bool):
                check_flag(name, getattr(self, name))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot work, before the data are looked at."""

    @abstractmethod
    def _fit_process(self, rows: Rows) -> tuple[GaussianProcess, OptimisationResult]:
        """Fit to validated rows in the user's units."""

    @abstractmethod
    def _extend_process(self, rows: Rows) -> GaussianProcess:
        """Condition the fitted process on further rows."""

    @abstractmethod
    def _kernel_in_user_units(self) -> Kernel:
        """The fitted kernel in the units of the data."""

    @abstractmethod
    def _log_evidence(self) -> float:
        """Log evidence of the standardised targets."""

    def _user_evidence(self, standardised: float) -> float:
        """A log density of the training targets in the units of y."""
        return standardised - self._n_rows() * float(np.log(self._standardiser.y_scale))

    @abstractmethod
    def _n_rows(self) -> int:
        """Number of rows conditioned on."""

    @abstractmethod
    def _rank(self) -> int:
        """Rank of the fitted process."""

    def _publish(self, outcome: OptimisationResult) -> None:
        """Set the fitted attributes, all in the user's units."""
        self.kernel_ = self._kernel_in_user_units()
        self.noise_variance_ = self._process.noise_variance * self._standardiser.y_scale**2
        self.noise_scale_ = self._process.noise_scale
        self.rank_ = self._rank()
        self.n_iter_ = max(1, outcome.n_iter)
        self.converged_ = outcome.converged
        self.stop_reason_ = outcome.reason
        self.history_ = outcome.history
        self.log_marginal_likelihood_ = self.log_marginal_likelihood()

    def _validated(self, X: ArrayLike | Rows) -> Rows:
        check_is_fitted(self)
        rows = load_inputs(self, X)
        check_inputs(rows, *self._range)
        return rows

    def _tensor(self, X: NDArray[np.floating]) -> Tensor:
        return torch.from_numpy(self._standardiser.inputs(X))

    def _moments(self, rows: Rows) -> tuple[Array, Array]:
        """Latent mean and variance (n,) in the user's units."""
        return mixture_moments(*self._member_moments(rows))

    def _member_moments(self, rows: Rows) -> tuple[Array, Array]:
        """Latent means and variances of the mixture's members, each (m, n), in the user's units, chunk by chunk."""
        members = self._process.members
        means, variances = np.empty((len(members), rows.n_rows)), np.empty((len(members), rows.n_rows))
        start = 0
        for chunk, _ in rows.chunks(default_chunk_rows(self.rank_)):
            X, part = self._tensor(chunk), slice(start, start + len(chunk))
            for i, member in enumerate(members):
                mean, variance = member.moments(X)
                means[i, part], variances[i, part] = mean.numpy(), variance.numpy()
            start += len(chunk)
        return self._standardiser.mean_to_user(means), self._standardiser.variance_to_user(variances)

    def _member_noise(self) -> Array:
        """Variance of a new observation around f, per member (m, 1), in the user's units."""
        noise = np.array([[member.predictive_noise] for member in self._process.members])
        return self._standardiser.variance_to_user(noise)

    def _mean_and_covariance(self, rows: Rows, include_noise: bool) -> tuple[Array, Array]:
        check_dense(rows.n_rows, "Ask for return_std=True or predict fewer rows at a time.")
        X = self._tensor(rows.take(slice(None))[0])
        covariance = self._process.covariance(X)
        covariance = 0.5 * (
            covariance + covariance.mT
        )  # products are symmetric to the last bit on some processors only
        if include_noise:
            covariance.diagonal().add_(self._process.predictive_noise)
        mean, _ = self._moments(rows)
        return mean, self._standardiser.variance_to_user(covariance.numpy())

    def _observers(self) -> list[Callback]:
        """The user's callbacks, and a printing one where ``verbose`` asks for it."""
        return [*(self.callbacks or ()), *([_print_iteration] if self.verbose else [])]


def _print_iteration(record: Any) -> None:
    print(
        f"iteration {record.iteration:4d}  objective/row {record.value:10.6f}  "
        f"|gradient| {record.gradient_norm:9.2e}  rank {record.rank}  {record.seconds:7.1f} s"
    )


def unoptimised(value: float = float("nan")) -> OptimisationResult:
    """The outcome of a fit that kept the hyper-parameters it was given."""
    reason = "the hyper-parameters were kept as given (optimize=False or a constant target)"
    return OptimisationResult(np.zeros(0), value, 0, True, reason, False, History())
