"""DNN+S, DNN+M and DNN+F: a network trained on squared error, then a model on its fitted outputs.

[paper, "DNNs for feature extraction", last rows of its tables] The network sees the same rows, steps, averaging and
choice of epoch as in the joint models. With ``calibrate=True``, which the joint models have by default, what differs
from DMGP is the joint likelihood alone; DFGP also has four outputs instead of one:

    DNN+S  y ~ N(g(x), s2)                     ``NetworkRegressor``
    DNN+M  Mercer GP, rank 15, on g(x) in R    ``TwoStepGP("mercer")``
    DNN+F  Fourier GP, rank 40, on g(x) in R   ``TwoStepGP("fourier")``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certgp.data import RowSource, StandardisedRows, Standardiser, SubsetSource, as_rows
from certgp.data.rows import read_target
from certgp.estimators.deep import DeepRegressor
from certgp.estimators.validation import (
    StartingValues,
    capped_rank,
    check_choice,
    check_count,
    check_fraction,
    generator,
    load_inputs,
    load_rows,
)
from certgp.features import FeatureMap, FourierMap, MercerMap
from certgp.features.spectral import iid_design
from certgp.gp.calibration import gaussian_nlpd
from certgp.training import Callback, OptimisationResult
from certgp.training.checkpoint import Checkpoint
from certgp.training.minibatch import MinibatchSettings, train_minibatches
from certgp.training.squared_error import Regression, SquaredErrorTask
from certgp.training.stochastic import JointModel
from certgp.transforms import TanhNetwork

Array = NDArray[np.float64]
_BLOCK_ROWS = 4096
_HELD_OUT = 0.1
_RANKS = {"mercer": 15, "fourier": 40}  # the paper's


class TwoStepGP(DeepRegressor):
    """DNN+M and DNN+F: a GP on the one output of a network that has learned y on squared error.

    Parameters
    ----------
    head : "mercer" (DNN+M) or "fourier" (DNN+F)
    rank : number of features; None takes the paper's, 15 and 40
    calibrate : raise the predictive noise where held-out rows ask for it
    hidden, max_iter, batch_size, learning_rate, shrinkage, random_state, verbose, callbacks : as in ``DeepMercerGP``
    """

    def __init__(
        self,
        head: str = "mercer",
        *,
        rank: int | None = None,
        hidden: Sequence[int] = (512, 256, 64),
        max_iter: int = 40,
        batch_size: int = 250,
        learning_rate: float = 4e-3,
        shrinkage: float = 0.5,
        calibrate: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.head = head
        self.rank = rank  # type: ignore[assignment]
        self.hidden = hidden
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.calibrate = calibrate
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    # the rest of a deep model's parameters, at their only sensible value for two steps
    embedding = 1
    network = None
    training = "running"
    validation_fraction = _HELD_OUT
    patience = None
    members = 1
    checkpoint = None
    kernel = "gaussian"
    objective = "marginal"
    length_scale = None
    signal_variance = None
    noise_variance = None
    optimize = True
    standardize = True
    dtype = "float64"
    engine = "local"
    cap_rank = True
    tolerance = 1e-3
    max_rank = 1_000

    @property
    def _default_rank(self) -> int:  # type: ignore[override]
        return _RANKS[self.head]

    @property
    def variance(self) -> str:  # type: ignore[override]
        """As in the deep model with the same head."""
        return "lowrank" if self.head == "fourier" else "dtc"

    def _train_minibatches(
        self,
        module: JointModel,
        rows: RowSource,
        validation: RowSource | None,
        checkpoint: Checkpoint | None,
        seed: int,
        begin: object,
    ) -> OptimisationResult:
        """Train the network alone; the head is fitted to its outputs afterwards, like every head at the end."""
        alone = Regression(module.network.module, 1, torch.Generator().manual_seed(seed))
        task = SquaredErrorTask(alone, rows, validation)
        return train_minibatches(task, self._settings(), seed=seed, callbacks=self._observers())

    def _check_parameters(self) -> None:
        check_choice("head", self.head, tuple(_RANKS))
        super()._check_parameters()

    def _usable_rank(self, rank: object) -> int:
        wanted = _RANKS[self.head] if rank is None else rank
        multiple = 2 if self.head == "fourier" else 1
        return capped_rank(wanted, self._summary.distinct_rows, self.cap_rank, multiple)

    def _features(self, start: StartingValues, rank: int, rng: np.random.Generator) -> FeatureMap:
        if self.head == "fourier":
            return FourierMap(start.kernel, iid_design(start.kernel, rank // 2, 1, rng))
        features = MercerMap(start.kernel, np.ones(1), rank)
        features.log_input_scale.requires_grad_(False)
        return features


class NetworkRegressor(RegressorMixin, BaseEstimator):
    """DNN+S: y ~ N(g(x), s2), g a network trained on squared error, s2 its mean squared error on the training rows.

    Parameters are those of ``DeepMercerGP``. ``calibrate=True`` takes s2 from the held-out tenth of the rows instead.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (512, 256, 64),
        max_iter: int = 40,
        batch_size: int = 250,
        learning_rate: float = 4e-3,
        shrinkage: float = 0.5,
        calibrate: bool = False,
        random_state: Any = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.hidden = hidden
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.calibrate = calibrate
        self.random_state = random_state
        self.callbacks = callbacks

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the network on nine tenths of the rows, choose the epoch on the last tenth."""
        check_count("max_iter", self.max_iter)
        check_count("batch_size", self.batch_size, least=2)
        loaded = load_rows(self, X, y, least_rows=2)
        rows, target = loaded.take(slice(None))[0], read_target(loaded)
        self._standardiser = Standardiser.fit(rows, target)
        rng = generator(self.random_state)
        seed, order = int(rng.integers(2**31)), rng.permutation(len(rows))
        held_out, learned = np.split(order, [round(_HELD_OUT * len(rows))])
        source = StandardisedRows(as_rows(rows, target), self._standardiser, torch.float32)
        start = torch.Generator().manual_seed(seed)
        network = TanhNetwork([rows.shape[1], *self.hidden, 1], start).float()
        self._module = Regression(network, 1, start)
        validation = SubsetSource(source, held_out) if len(held_out) else None
        settings = MinibatchSettings(
            epochs=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            shrinkage=self.shrinkage,
        )
        task = SquaredErrorTask(self._module, SubsetSource(source, learned), validation)
        outcome = train_minibatches(task, settings, seed=seed, callbacks=self.callbacks or ())
        self.history_, self.n_iter_ = outcome.history, outcome.n_iter
        self.noise_variance_ = self.training_noise_variance_ = self._mean_squared_error(rows[learned], target[learned])
        if self.calibrate and len(held_out):
            self.noise_variance_ = self._mean_squared_error(rows[held_out], target[held_out])
        return self

    def _mean_squared_error(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> float:
        return float(np.mean(np.square(y - self._outputs(X))))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """g(x) (n,), optionally with the standard deviation of new observations (n,)."""
        check_is_fitted(self)
        mean = self._outputs(load_inputs(self, X).take(slice(None))[0])
        return (mean, np.full(len(mean), self.noise_variance_**0.5)) if return_std else mean

    def _outputs(self, X: NDArray[np.floating]) -> Array:
        inputs = torch.from_numpy(self._standardiser.inputs(X)).float()
        with torch.no_grad():
            parts = [self._module(block).double() for block in torch.split(inputs, _BLOCK_ROWS)]
        return self._standardiser.mean_to_user(torch.cat(parts).numpy())

    def predict_interval(self, X: ArrayLike, coverage: float = 0.95) -> tuple[Array, Array]:
        """Ends, each (n,), of the central interval that holds a new y with probability ``coverage``."""
        half = ndtri(0.5 + 0.5 * check_fraction("coverage", coverage))
        mean, std = self.predict(X, return_std=True)
        return mean - half * std, mean + half * std

    def nlpd(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean negative log predictive density of y (n,) at X (n, D), in the units of y."""
        mean, std = self.predict(X, return_std=True)
        return gaussian_nlpd(np.asarray(y, dtype=np.float64), mean, np.square(std))
