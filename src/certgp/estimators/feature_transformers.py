"""The feature maps as scikit-learn transformers: ``transform(X)`` returns the N x r array Phi.

Users import them from ``certgp.features``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from certgp.checks import check_rank
from certgp.errors import InvalidInputError
from certgp.features.base import FeatureMap
from certgp.features.data_mercer import pick_by_column_norm, tune_input_scale
from certgp.features.fourier import FourierMap
from certgp.features.inducing import inducing_points
from certgp.features.mercer import MercerMap
from certgp.features.nystrom import DEFAULT_JITTER, NystromMap
from certgp.features.spectral import DataSummary, spectral_design
from certgp.kernels import Kernel, kernel_from_name

Scales = float | Sequence[float] | NDArray[np.float64]
_SUBSAMPLE = 300


class _FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """fit builds the map (``map_``) for the given hyper-parameters; nothing is learned from y."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Build the feature map for the columns of X."""
        rows = torch.as_tensor(np.array(validate_data(self, X, dtype=np.float64), order="C"))
        self.map_ = self._build(rows)
        self._n_features_out = self.map_.rank
        return self

    @torch.no_grad()
    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Phi (N, r), including the signal variance: Phi Phi' approximates k(X, X)."""
        check_is_fitted(self)
        rows = torch.as_tensor(np.array(validate_data(self, X, dtype=np.float64, reset=False), order="C"))
        features = self.map_(rows) * float(np.sqrt(self.signal_variance))
        return np.ascontiguousarray(features.numpy())

    @abstractmethod
    def _build(self, X: Tensor) -> FeatureMap:
        """The map for the columns of X (n, d) at the given hyper-parameters."""


@dataclass(eq=False, repr=False)
class MercerFeatures(_FeatureTransformer):
    """Weighted eigenfunctions of the Gaussian kernel under x_j ~ N(0, input_scale_j^2).

    Parameters
    ----------
    length_scale : float or one per column
    input_scale : float or one per column, or "tuned": centre and scale chosen so that Phi Phi' loses little of X
    rank : number of features; ``index_set="box"`` rounds it down to a full power
    signal_variance : k(x, x)
    index_set : "optimal" | "total_degree" | "box", or "column_norm": those of largest norm on X out of twice as many

    Notes
    -----
    Phi Phi' <= k(X, X) whatever the choice.
    """

    length_scale: Scales = 1.0
    input_scale: Scales | Literal["tuned"] = 1.0
    rank: int = 100
    signal_variance: float = 1.0
    index_set: str = "optimal"

    def _build(self, X: Tensor) -> FeatureMap:
        kernel = _kernel("gaussian", self.length_scale, X.shape[1], self.signal_variance)
        rank, centre = check_rank(self.rank), None
        scale: NDArray[np.float64] | Tensor
        if isinstance(self.input_scale, str):
            if self.input_scale != "tuned":
                raise InvalidInputError(f"input_scale must be positive numbers or 'tuned', found {self.input_scale!r}")
            scale, centre = tune_input_scale(kernel, X, rank), X.mean(0)
        else:
            scale = _per_column("input_scale", self.input_scale, X.shape[1])
        by_norm = self.index_set == "column_norm"
        features = MercerMap(kernel, scale, rank, "optimal" if by_norm else self.index_set, centre)
        if by_norm:
            pick_by_column_norm(features, X, rank)
        return features


@dataclass(eq=False, repr=False)
class FourierFeatures(_FeatureTransformer):
    """cos/sin pairs at frequencies of the kernel's spectral law.

    Parameters
    ----------
    length_scale : float or one per column
    rank : number of features, two per frequency; an odd rank is rounded down
    signal_variance : k(x, x)
    kernel : "gaussian" | "matern12" | "matern32" | "matern52"
    sampling : "iid" | "orthogonal" | "sobol" | "widened" | "leverage" | "modified"
    noise_variance : used by "leverage" and "modified" only, which depend on the data
    """

    length_scale: Scales = 1.0
    rank: int = 100
    signal_variance: float = 1.0
    kernel: str = "gaussian"
    sampling: str = "sobol"
    noise_variance: float = 0.1
    random_state: Any = None

    def _build(self, X: Tensor) -> FeatureMap:
        kernel = _kernel(self.kernel, self.length_scale, X.shape[1], self.signal_variance)
        kernel.check_spectral_law()
        rng = _generator(self.random_state)
        rows = X[rng.permutation(X.shape[0])[:_SUBSAMPLE]]
        data = DataSummary(rows / kernel.values["length_scale"], X.shape[0], self.noise_variance / self.signal_variance)
        if check_rank(self.rank) < 2:
            raise InvalidInputError("rank must be at least 2: Fourier features come in pairs of cosine and sine")
        pairs = self.rank // 2
        return FourierMap(kernel, spectral_design(self.sampling, kernel, pairs, X.shape[1], rng, data))


@dataclass(eq=False, repr=False)
class NystromFeatures(_FeatureTransformer):
    """The kernel seen through inducing points chosen from X: Phi Phi' = K_xz (K_zz + jitter sf2 I)^-1 K_zx <= K.

    Parameters
    ----------
    length_scale : float or one per column
    rank : number of inducing points (fewer when X has fewer distinct rows)
    signal_variance : k(x, x)
    kernel : "gaussian" | "matern12" | "matern32" | "matern52"
    inducing : "greedy" (pivoted Cholesky) | "kmeans"
    jitter : part of the definition, relative to the signal variance
    """

    length_scale: Scales = 1.0
    rank: int = 100
    signal_variance: float = 1.0
    kernel: str = "gaussian"
    inducing: str = "greedy"
    jitter: float = DEFAULT_JITTER
    random_state: Any = None

    def _build(self, X: Tensor) -> FeatureMap:
        kernel = _kernel(self.kernel, self.length_scale, X.shape[1], self.signal_variance)
        rank = min(check_rank(self.rank), X.shape[0])
        points = inducing_points(self.inducing, kernel, X, rank, _generator(self.random_state))
        return NystromMap(kernel, points, jitter=self.jitter)


def _kernel(name: str, length_scale: Scales, dimension: int, signal_variance: float) -> Kernel:
    scales = _per_column("length_scale", length_scale, dimension)
    return kernel_from_name(name)().replace(length_scale=scales, signal_variance=signal_variance).expanded(dimension)


def _per_column(name: str, value: Scales, dimension: int) -> NDArray[np.float64]:
    scales = np.asarray(value, dtype=np.float64)
    if scales.ndim > 1 or (scales.ndim == 1 and scales.shape[0] not in (1, dimension)):
        raise InvalidInputError(f"{name} has {scales.size} numbers but X has {dimension} columns")
    return np.broadcast_to(scales, (dimension,)).copy()


def _generator(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
