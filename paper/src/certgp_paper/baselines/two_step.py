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
from torch import Tensor

from certgp.checks import check_choice, check_count, check_fraction
from certgp.data import (
    Chunk,
    ChunkSource,
    RowSource,
    StandardisedRows,
    Standardiser,
    SubsetSource,
    as_rows,
    summarise,
)
from certgp.features import FeatureMap, FourierMap, MercerMap
from certgp.features.spectral import iid_design
from certgp.gp import Box, LowRankModel
from certgp.gp.calibration import gaussian_nlpd
from certgp.kernels import Gaussian
from certgp.training import Callback, History, OptimisationResult
from certgp.training.mini_batch.evidence import JointModel, finish
from certgp.training.mini_batch.squared_error import Regression, SquaredErrorTask
from certgp.training.mini_batch.steps import MinibatchSettings, train_minibatches
from certgp.transforms import Network, TanhNetwork
from certgp_paper.baselines.base import Baseline, check_inputs, check_rows, generator

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
_BLOCK_ROWS = 4096
_HELD_OUT = 0.1
_FEWEST_HELD_OUT = 10
_RANKS = {"mercer": 15, "fourier": 40}  # the paper's
_START_SIGNAL, _START_NOISE = 1.0, 0.1


class TwoStepGP(Baseline):
    """DNN+M and DNN+F: a GP on the one output of a network that has learned y on squared error.

    Parameters
    ----------
    head : "mercer" (DNN+M) or "fourier" (DNN+F)
    rank : number of features; None takes the paper's, 15 and 40
    calibrate : raise the predictive noise where held-out rows ask for it
    hidden, max_iter, batch_size, learning_rate, shrinkage, random_state, callbacks : as in ``DeepMercerGP``
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
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.head = head
        self.rank = rank
        self.hidden = hidden
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.calibrate = calibrate
        self.random_state = random_state
        self.callbacks = callbacks

    def _train(self, X: Tensor, y: Tensor, seed: int) -> History:
        """Train the network alone, then fit the head to its outputs as every deep model's is fitted at the end."""
        check_choice("head", self.head, tuple(_RANKS))
        check_count("max_iter", self.max_iter)
        check_count("batch_size", self.batch_size, least=2)
        self.rank_ = check_count("rank", _RANKS[self.head] if self.rank is None else self.rank)
        split_rng, model_rng = np.random.default_rng(seed).spawn(2)  # as in the deep models, draw by draw
        weight_rng, feature_rng = model_rng.spawn(2)
        learned, held_out = _split(len(X), split_rng)
        start = torch.Generator().manual_seed(int(weight_rng.integers(2**31)))
        network = Network(TanhNetwork([X.shape[1], *self.hidden, 1], start).float(), 1)
        outcome = self._train_network(network, X, y, learned, held_out, seed)
        model = LowRankModel(network.double(), self._features(feature_rng)).eval()
        self._process = finish(
            JointModel(model, _START_SIGNAL, _START_NOISE),
            ChunkSource(Chunk(X, y)),
            learned,
            held_out,
            objective="marginal",
            variance="lowrank" if self.head == "fourier" else "dtc",  # as in the deep model with the same head
            calibrate=self.calibrate,
        )
        self._process.box = Box(X.min(0).values, X.max(0).values)
        self.noise_scale_, self.n_iter_ = self._process.noise_scale, outcome.n_iter
        return outcome.history

    def _train_network(
        self, network: Network, X: Tensor, y: Tensor, learned: Positions, held_out: Positions, seed: int
    ) -> OptimisationResult:
        rows = ChunkSource(Chunk(X.float(), y.float()))
        validation = SubsetSource(rows, held_out) if len(held_out) else None
        alone = Regression(network.module, 1, torch.Generator().manual_seed(seed))
        return _minimise_squared_error(self, alone, SubsetSource(rows, learned), validation, seed)

    def _features(self, rng: np.random.Generator) -> FeatureMap:
        kernel = Gaussian(np.ones(1), _START_SIGNAL)
        if self.head == "fourier":
            return FourierMap(kernel, iid_design(kernel, self.rank_ // 2, 1, rng))
        features = MercerMap(kernel, np.ones(1), self.rank_)
        features.log_input_scale.requires_grad_(False)
        return features

    def _components(self, X: Tensor) -> tuple[Tensor, Tensor]:
        parts = [self._process.moments(block) for block in torch.split(X, _BLOCK_ROWS)]
        means, variances = (torch.cat(moments)[None] for moments in zip(*parts, strict=True))
        return means, variances + self.noise_scale_ * self._process.noise_variance


def _split(n: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Positions of rows to learn from and of held-out rows; none of the latter where there are few."""
    count = round(_HELD_OUT * n)
    order = rng.permutation(n)
    count = 0 if count < _FEWEST_HELD_OUT else count
    return np.sort(order[count:]), np.sort(order[:count])


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
        rows, target = check_rows(self, X, y)
        self._standardiser = Standardiser.of(summarise(as_rows(rows, target)))
        rng = generator(self.random_state)
        seed, order = int(rng.integers(2**31)), rng.permutation(len(rows))
        held_out, learned = np.split(order, [round(_HELD_OUT * len(rows))])
        source = StandardisedRows(as_rows(rows, target), self._standardiser, torch.float32)
        start = torch.Generator().manual_seed(seed)
        network = TanhNetwork([rows.shape[1], *self.hidden, 1], start).float()
        self._module = Regression(network, 1, start)
        validation = SubsetSource(source, held_out) if len(held_out) else None
        outcome = _minimise_squared_error(self, self._module, SubsetSource(source, learned), validation, seed)
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
        mean = self._outputs(check_inputs(self, X))
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


def _minimise_squared_error(
    model: TwoStepGP | NetworkRegressor, module: Regression, rows: RowSource, validation: RowSource | None, seed: int
) -> OptimisationResult:
    settings = MinibatchSettings(
        epochs=model.max_iter,
        batch_size=model.batch_size,
        learning_rate=model.learning_rate,
        shrinkage=model.shrinkage,
    )
    task = SquaredErrorTask(module, rows, validation)
    return train_minibatches(task, settings, seed=seed, callbacks=model.callbacks or ())
