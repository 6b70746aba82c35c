"""Fitted models of several outputs, asked as one. The axis of the outputs is the second one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import Rows
from certgp.data.columns import Numbers
from certgp.engines.local import default_chunk_rows
from certgp.gp import Mixture
from certgp.gp.log_mixture import LogMixture
from certgp.gp.shared_features import SharedFeatures
from certgp.models.fitted import FittedModel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutputMixtures:
    """Predictive distributions of q outputs at n rows."""

    mixtures: Sequence[Mixture | LogMixture]

    def moments(self) -> tuple[Array, Array]:
        """Means and variances (n, q), (n, q)."""
        means, variances = zip(*(each.moments() for each in self.mixtures), strict=True)
        return np.stack(means, 1), np.stack(variances, 1)

    def log_density(self, Y: Array) -> Array:
        """At Y (n, q): (n, q), NaN where Y is."""
        return np.stack([each.log_density(Y[:, j]) for j, each in enumerate(self.mixtures)], 1)

    def quantiles(self, levels: Array) -> Array:
        """(n, q, number of levels)."""
        return np.stack([each.quantiles(levels) for each in self.mixtures], 1)


class FittedOutputs:
    """The models of q outputs. Where they share features, these are evaluated once for all."""

    def __init__(self, models: Sequence[FittedModel]) -> None:
        self.models = tuple(models)
        self._shared = SharedFeatures.of([model.process for model in models])

    @property
    def lower(self) -> Array:
        """(D,) least input of any output's rows."""
        return np.asarray(np.min([model.lower for model in self.models], axis=0))

    @property
    def upper(self) -> Array:
        """(D,) largest input."""
        return np.asarray(np.max([model.upper for model in self.models], axis=0))

    @property
    def returns_to_prior(self) -> bool:
        """Do all outputs fall back to the prior far outside the training inputs?"""
        return all(model.returns_to_prior for model in self.models)

    def log_evidence(self) -> Array:
        """Log density of each output's targets, in its units: (q,)."""
        return np.array([model.log_evidence() for model in self.models])

    def latent(self, rows: Rows) -> OutputMixtures:
        """The distribution of each f at each row."""
        if self._shared is None:
            return OutputMixtures([model.latent(rows) for model in self.models])
        parts = list(rows.map(self._moments_of, self._chunk_rows))
        found = []
        for j, model in enumerate(self.models):
            mean, variance = (torch.cat([part[j][i] for part in parts])[None].numpy() for i in (0, 1))
            found.append(model.in_user_units(Mixture(mean, variance, np.ones(1))))
        return OutputMixtures(found)

    def observations(self, rows: Rows) -> OutputMixtures:
        """The distribution of new observations of each output at each row."""
        if self._shared is None:
            return OutputMixtures([model.observations(rows) for model in self.models])
        parts: list[list[Mixture]] = [[] for _ in self.models]
        for found in rows.map(self._observations_of, self._chunk_rows):
            for own, each in zip(parts, found, strict=True):
                own.append(each)
        pairs = zip(self.models, parts, strict=True)
        return OutputMixtures([model.in_user_units(Mixture.join(own)) for model, own in pairs])

    def mean_and_covariance(self, rows: Rows, include_noise: bool) -> tuple[Array, Array]:
        """Means (n, q) and joint covariances (n, n, q)."""
        means, covariances = zip(*(each.mean_and_covariance(rows, include_noise) for each in self.models), strict=True)
        return np.stack(means, 1), np.stack(covariances, 2)

    def sample(self, rows: Rows, count: int, generator: torch.Generator, include_noise: bool) -> Array:
        """Joint draws (n, q, count); outputs are independent given their targets."""
        return np.stack([each.sample(rows, count, generator, include_noise) for each in self.models], 1)

    def _moments_of(self, X: Numbers, _: Numbers | None) -> Sequence[tuple[Tensor, Tensor]]:
        """Latent moments of a chunk, one pair for each output, where these share features."""
        assert self._shared is not None
        return self._shared.moments(self.models[0].tensor(X))

    def _observations_of(self, X: Numbers, _: Numbers | None) -> list[Mixture]:
        assert self._shared is not None
        return [Mixture.of_sum(*each) for each in self._shared.observations(self.models[0].tensor(X))]

    @property
    def _chunk_rows(self) -> int:
        return default_chunk_rows(self.models[0].process.rank + 2 * len(self.models))
