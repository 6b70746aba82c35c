"""Local GPs: every row is conditioned on a few near ones.  [Vecchia 1988; Katzfuss and Guinness 2021]"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from certgp.data import Chunk
from certgp.gp.conditionals import Conditionals, Indices, condition, sparse_weights
from certgp.gp.neighbours import Neighbours, earlier_neighbours, search_coordinates
from certgp.gp.noise import NEAR, NoiseInputs, near_scatter, nothing
from certgp.gp.process import GaussianProcess, check_dense, sample_centred
from certgp.kernels import Kernel
from certgp.transforms import Transform

Array = NDArray[np.float64]
_BLOCK = 1024  # rows of kernel values at a time


def error_covariance(
    covariance: Callable[[Tensor, Tensor], Tensor], new: Tensor, rows: Tensor, weights: csr_matrix, noise: Array
) -> Tensor:
    """K** - V K_N* - (V K_N*)' + V (K_NN + diag(noise)) V' for the weights V (n, u) of rows (u, .) with noise variances
    (u,) at new rows (n, .).
    """
    result = covariance(new, new).numpy()
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        own = weights[:, part]
        cross = own @ covariance(rows[part], new).numpy()
        result -= cross + cross.T
        for other in range(0, len(rows), _BLOCK):
            columns = slice(other, other + _BLOCK)
            result += (own @ covariance(rows[part], rows[columns]).numpy()) @ weights[:, columns].T
        result += (own.multiply(noise[part]) @ own.T).toarray()
    return torch.from_numpy(0.5 * (result + result.T))


class LocalProcess(GaussianProcess):
    r"""A GP in which each row depends on a few near rows alone.

    Training rows, in their order, are conditioned on the ``train_neighbours`` nearest rows before them. This defines
    the law of y, q(y) = prod_i N(y_i | mean_i, variance_i + s2), with s2 / weight_i where rows have weights. A new row
    comes after all of them, conditioned on the ``neighbours`` nearest training rows. With all rows as neighbours both
    are the exact GP.
    """

    holds_rows: bool = True

    def __init__(
        self,
        transform: Transform,
        kernel: Kernel,
        X: Tensor,
        y: Tensor,
        noise_variance: float,
        neighbours: int,
        train_neighbours: int,
        log_evidence: float | None = None,
        weight: Tensor | None = None,
    ) -> None:
        self._transform = transform.eval().requires_grad_(False)
        self._kernel = kernel.detached()
        self.rows = Chunk(X, y, weight)
        self.X, self.y = X, y
        self.signal_variance = float(kernel.signal_variance)
        self.noise_variance = noise_variance
        self.neighbours, self.train_neighbours = neighbours, train_neighbours
        self._log_evidence = log_evidence

    def __getstate__(self) -> dict[str, Any]:
        """Without what is found again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("inputs", "index")}

    @property
    def kernel(self) -> Kernel:
        return self._kernel

    @property
    def transform(self) -> Transform:
        return self._transform

    @property
    def returns_to_prior(self) -> bool:
        return self._transform.keeps_coordinates and self._kernel.decaying_columns(self.X.shape[1]) == set(
            range(self.X.shape[1])
        )

    @property
    def rank(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    @cached_property
    @torch.no_grad()
    def inputs(self) -> Tensor:
        """g(x) of the training rows (N, d), in their order."""
        transformed: Tensor = self._transform(self.X)
        return transformed

    @property
    def row_noise(self) -> NDArray[np.float64]:
        """Noise variances of the training rows (N,)."""
        found = self.rows.noise(self.noise_variance)
        return np.full(self.n_rows, found) if isinstance(found, float) else found.numpy()

    @cached_property
    def index(self) -> Neighbours:
        """The training rows by nearness."""
        return Neighbours(search_coordinates(self._kernel, self.inputs))

    def log_evidence(self) -> float:
        """sum_i log N(y_i | mean_i, variance_i + s2) over the training rows in their order."""
        if self._log_evidence is None:
            self._log_evidence = self._terms(0)
        return self._log_evidence

    @property
    def known_log_evidence(self) -> float | None:
        """The log evidence, where it was asked for before."""
        return self._log_evidence

    def _terms(self, first: int) -> float:
        """The log density of the rows from ``first`` on, given those before them."""
        found = self.ordered_conditionals(first)
        d = found.variance + self.row_noise[first:]
        squares = np.square(self.y[first:].numpy() - found.mean) / d
        return -0.5 * float(np.sum(np.log(2.0 * math.pi * d) + squares))

    def ordered_conditionals(self, first: int = 0) -> Conditionals:
        """Conditionals of the training rows from ``first`` on given their neighbours among the rows before them."""
        sets = earlier_neighbours(self.index.points, self.train_neighbours, first)
        return condition(self._kernel, self.inputs[first:], self.inputs, self.y, sets, self.row_noise)

    @torch.no_grad()
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        new = self._transform(X)
        found = self._condition(new, self.nearest(new))
        return torch.from_numpy(found.mean), torch.from_numpy(found.variance)

    @torch.no_grad()
    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        new = self._transform(X)
        near = self.nearest(new)
        return self._noise_inputs(X, new, near)

    @torch.no_grad()
    def leave_one_out(self, rows: Indices) -> NoiseInputs:
        """These training rows (n,), each predicted from its neighbours without itself."""
        near = self.index.nearest(self.index.points[rows], min(self.neighbours, self.n_rows - 1), own=rows)
        picked = torch.from_numpy(rows)
        return self._noise_inputs(self.X[picked], self.inputs[picked], near)

    def _noise_inputs(self, X: Tensor, new: Tensor, near: Indices) -> NoiseInputs:
        found = self._condition(new, near)
        mean, variance = torch.from_numpy(found.mean), torch.from_numpy(found.variance)
        scatter = near_scatter(self.y, near[:, :NEAR], mean)
        return NoiseInputs(X.double(), mean, variance, nothing(len(X)), nothing(len(X)), scatter)

    def nearest(self, new: Tensor) -> Indices:
        """The training rows (n, m) that predictions at transformed rows (n, d) are conditioned on."""
        return self.index.nearest(search_coordinates(self._kernel, new), min(self.neighbours, self.n_rows))

    def _condition(self, new: Tensor, near: Indices, with_weights: bool = False) -> Conditionals:
        return condition(self._kernel, new, self.inputs, self.y, near, self.row_noise, with_weights)

    @torch.no_grad()
    def covariance(self, X: Tensor) -> Tensor:
        r"""Covariance of the errors f(x_i) - v_i'y of the local predictions under the GP:

            C = K** - V K_N* - (V K_N*)' + V (K_NN + s2 I) V'      (s2 diag(1 / weight) with weights)

        with the weights v_i as sparse rows of V. It is positive semi-definite for any neighbours, does not depend on
        the order of the rows, and is the exact posterior covariance where all rows are neighbours.
        """
        check_dense(X.shape[0], "Predict fewer rows at a time.")
        new = self._transform(X)
        near = self.nearest(new)
        found = self._condition(new, near, with_weights=True)
        assert found.weights is not None
        used, place = np.unique(near[near >= 0], return_inverse=True)
        sets = np.full(near.shape, -1)
        sets[near >= 0] = place
        V, rows = sparse_weights(sets, found.weights, len(used)), self.inputs[torch.from_numpy(used)]
        covariance = error_covariance(self._kernel, new, rows, V, self.row_noise[used])
        covariance.diagonal().copy_(torch.from_numpy(found.variance))  # the same numbers as in ``moments``
        return covariance

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        check_dense(X.shape[0], "Draw at fewer rows.")
        mean, _ = self.moments(X)
        return mean[:, None] + sample_centred(self.covariance(X), count, generator)

    def reweighted(self, weight: Tensor | None, noise_variance: float) -> LocalProcess:
        """The same rows with other weights (N,) and noise."""
        return self._with(self._kernel, noise_variance, weight)

    def with_variances(self, signal_variance: float, noise_variance: float) -> LocalProcess:
        """The same kernel and rows with other variances."""
        return self._with(self._kernel.with_signal_variance(signal_variance), noise_variance, self.rows.weight)

    def _with(self, kernel: Kernel, noise_variance: float, weight: Tensor | None) -> LocalProcess:
        other = LocalProcess(
            self._transform,
            kernel,
            self.X,
            self.y,
            noise_variance,
            self.neighbours,
            self.train_neighbours,
            weight=weight,
        )
        for name in ("inputs", "index"):  # they depend on neither
            other.__dict__[name] = getattr(self, name)
        return other.with_settings_of(self)

    def updated(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> LocalProcess:
        """Conditioned on further rows, which come last in the order: nothing before them changes."""
        rows = Chunk.join([self.rows, Chunk(X, y, weight)])
        extended = LocalProcess(
            self._transform,
            self._kernel,
            rows.X,
            rows.y,
            self.noise_variance,
            self.neighbours,
            self.train_neighbours,
            weight=rows.weight,
        )
        if self._log_evidence is not None:
            extended._log_evidence = self._log_evidence + extended._terms(self.n_rows)
        return extended.with_settings_of(self)
