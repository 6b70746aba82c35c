"""What all estimators share: the scikit-learn contract around a fitted process."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from certgp.data import Standardiser
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError
from certgp.estimators.validation import (
    check_count,
    check_fraction,
    checked_inputs,
    checked_rows,
    numbers,
    warn_about_constants,
)
from certgp.gp import GaussianProcess
from certgp.gp.process import check_dense
from certgp.guarantees import Certificate, RankCurve
from certgp.kernels import Kernel
from certgp.training import Callback, History, OptimisationResult

Array = NDArray[np.float64]


class GPRegressor(RegressorMixin, BaseEstimator, ABC):
    """Gaussian-process regression in the units of the data given.

    Subclasses say how a process is fitted (``_fit_process``), extended (``_extend_process``) and described; everything
    here is the same for all of them: validation, standardisation, prediction in bounded memory.
    """

    _process: GaussianProcess
    _standardiser: Standardiser
    standardize: bool
    random_state: Any
    verbose: int
    callbacks: Sequence[Callback] | None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn hyper-parameters from all rows and condition on them. X (N, D), y (N,)."""
        before = dict(self.__dict__)
        try:
            return self._fit(X, y)
        except BaseException:  # a refused or interrupted fit leaves the estimator as it was, fitted or not
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        self._check_parameters()
        self.__dict__.pop("target_name_", None)
        rows, target = checked_rows(self, X, y, ensure_min_samples=2)
        warn_about_constants(rows, target, getattr(self, "feature_names_in_", None), self.standardize)
        fitted = Standardiser.fit(rows, target)
        unscaled = Standardiser.identity(rows.shape[1], fitted.ignored)
        self._standardiser = fitted if self.standardize else unscaled
        self._process, outcome = self._fit_process(rows, target)
        self._publish(outcome)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Condition on further rows; hyper-parameters, features and standardisation stay. The first call is ``fit``."""
        if not hasattr(self, "_process"):
            return self.fit(X, y)
        rows, target = checked_rows(self, X, y, reset=False)
        self._process = self._extend_process(rows, target)
        self.rank_ = self._rank()
        self.log_marginal_likelihood_ = self.log_marginal_likelihood()
        return self

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False, include_noise: bool = True
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
        mean, variance = self._moments(rows)
        if not return_std:
            return mean
        return mean, np.sqrt(variance + self.noise_variance_ if include_noise else variance)

    def predict_quantiles(self, X: ArrayLike, quantiles: ArrayLike) -> Array:
        """Quantiles of the predictive distribution of y: (n, number of quantiles)."""
        levels = np.atleast_1d(numbers("quantiles", quantiles, "lie strictly between 0 and 1"))
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"quantiles must lie strictly between 0 and 1, found {quantiles!r}")
        mean, variance = self._moments(self._validated(X))
        std = np.sqrt(variance + self.noise_variance_)
        return np.asarray(mean[:, None] + std[:, None] * ndtri(levels))

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends, each (n,), of the central interval that holds a new y with probability ``coverage``."""
        half = 0.5 * check_fraction("coverage", coverage)
        ends = self.predict_quantiles(X, [0.5 - half, 0.5 + half])
        return ends[:, 0], ends[:, 1]

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, include_noise: bool = True) -> Array:
        """Joint draws at the rows of X: (n, n_samples)."""
        check_count("n_samples", n_samples)
        rows = self._validated(X)
        source = torch.Generator().manual_seed(int(check_random_state(random_state).randint(2**31 - 1)))
        draws = self._process.sample(self._tensor(rows), n_samples, source)
        if include_noise:
            noise = torch.randn(draws.shape, dtype=draws.dtype, generator=source)
            draws = draws + math.sqrt(self._process.noise_variance) * noise
        return self._standardiser.mean_to_user(draws.numpy())

    def nlpd(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean negative log predictive density of y (n,) at X (n, D), in the units of y; lower is better."""
        check_is_fitted(self)
        rows, target = checked_rows(self, X, y, reset=False)
        mean, variance = self._moments(rows)
        total = variance + self.noise_variance_
        return float(np.mean(0.5 * (np.log(2.0 * np.pi * total) + np.square(target - mean) / total)))

    def log_marginal_likelihood(self) -> float:
        """Log density of the training targets under the fitted model, in the units of y."""
        check_is_fitted(self)
        return self._user_evidence(self._log_evidence())

    @abstractmethod
    def certify(self, X: ArrayLike | None = None) -> Certificate:
        """How far this model is from the exact GP with the same hyper-parameters, with proof."""

    @abstractmethod
    def rank_curve(self) -> RankCurve:
        """Log evidence, and where it exists the guarantee, for every rank up to the fitted one."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file without its training data; ``certgp.load`` reads it."""
        from certgp.estimators.persistence import save

        check_is_fitted(self)
        save(self, Path(path))

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot work, before the data are looked at."""

    @abstractmethod
    def _fit_process(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[GaussianProcess, OptimisationResult]:
        """Fit to validated rows in the user's units."""

    @abstractmethod
    def _extend_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> GaussianProcess:
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
        self.rank_ = self._rank()
        self.n_iter_ = max(1, outcome.n_iter)
        self.converged_ = outcome.converged
        self.stop_reason_ = outcome.reason
        self.history_ = outcome.history
        self.log_marginal_likelihood_ = self.log_marginal_likelihood()

    def _validated(self, X: ArrayLike) -> NDArray[np.floating]:
        check_is_fitted(self)
        return checked_inputs(self, X)

    def _tensor(self, rows: NDArray[np.floating]) -> Tensor:
        return torch.from_numpy(self._standardiser.inputs(rows))

    def _moments(self, rows: NDArray[np.floating]) -> tuple[Array, Array]:
        """Latent mean and variance in the user's units; memory is one chunk."""
        mean, variance = np.empty(len(rows)), np.empty(len(rows))
        for part in _slices(len(rows), default_chunk_rows(self.rank_)):
            m, v = self._process.moments(self._tensor(rows[part]))
            mean[part], variance[part] = m.numpy(), v.numpy()
        return self._standardiser.mean_to_user(mean), self._standardiser.variance_to_user(variance)

    def _mean_and_covariance(self, rows: NDArray[np.floating], include_noise: bool) -> tuple[Array, Array]:
        check_dense(len(rows), "Ask for return_std=True or predict fewer rows at a time.")
        X = self._tensor(rows)
        covariance = self._process.covariance(X)
        if include_noise:
            covariance.diagonal().add_(self._process.noise_variance)
        mean, _ = self._moments(rows)
        return mean, self._standardiser.variance_to_user(covariance.numpy())

    def _observers(self) -> list[Callback]:
        """The user's callbacks, and a printing one where ``verbose`` asks for it."""
        return [*(self.callbacks or ()), *([_print_iteration] if self.verbose else [])]


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _print_iteration(record: Any) -> None:
    print(
        f"iteration {record.iteration:4d}  objective/row {record.value:10.6f}  "
        f"|gradient| {record.gradient_norm:9.2e}  rank {record.rank}  {record.seconds:7.1f} s"
    )


def unoptimised(value: float = float("nan")) -> OptimisationResult:
    """The outcome of a fit that kept the hyper-parameters it was given."""
    reason = "the hyper-parameters were kept as given (optimize=False or a constant target)"
    return OptimisationResult(np.zeros(0), value, 0, True, reason, False, History())
