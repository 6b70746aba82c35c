r"""Several finalists as one: the mixture of their predictive densities that held-out rows like best.

    maximise over w >= 0, sum w = 1:   sum_i log sum_k w_k p_k(y_i | x_i)

by expectation maximisation, which raises it at every step [Yao, Vehtari, Simpson, Gelman 2018, eq. 8]. The weights of
one half of the held-out rows are judged on the other half: the gain over the best model alone must exceed its standard
error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from certgp.gp import MixtureProcess
from certgp.training.recipes.race.contest import Contest
from certgp.training.recipes.race.standing import Standing

Array = NDArray[np.float64]
_STEPS, _ENOUGH = 500, 1e-7  # of expectation maximisation; nats per row of the last one
_LEAST_WEIGHT = 0.02  # a member with less costs its predictions and gains nothing


@dataclass(frozen=True, eq=False)
class Stack:
    """Finalists with their weights, the heaviest first, and what held-out rows say of the mixture."""

    standings: tuple[Standing, ...]
    weights: Array  # (k,), of sum one
    gain: float  # nats per held-out row over the winner alone
    standard_error: float
    losses: Array  # of the mixture (n,), by weights that the row had no part in

    @property
    def pays(self) -> bool:
        """Do rows that the weights have not seen gain more than chance would?"""
        return len(self.standings) > 1 and self.gain > self.standard_error

    @property
    def name(self) -> str:
        """Of all members."""
        return " + ".join(each.name for each in self.standings)

    def complete(self, contest: Contest) -> MixtureProcess:
        """The mixture, each member conditioned on the rows that it has not seen."""
        return MixtureProcess([contest.complete(each) for each in self.standings], self.weights)


def stack(standings: Sequence[Standing], winner: Standing, rng: np.random.Generator) -> Stack:
    """The best mixture of some standings, compared with the winner alone."""
    densities = -np.stack([each.losses for each in standings])
    n = densities.shape[1]
    losses, half = np.empty(n), rng.permutation(n) % 2 == 0
    for seen in (half, ~half):
        losses[~seen] = -_log_mixture(densities[:, ~seen], stacking_weights(densities[:, seen]))
    gains = winner.losses - losses
    weights = stacking_weights(densities)
    kept = [k for k in np.argsort(-weights) if weights[k] >= _LEAST_WEIGHT]
    weights = stacking_weights(densities[kept])
    error = float(gains.std(ddof=1)) / math.sqrt(n)
    return Stack(tuple(standings[k] for k in kept), weights, float(gains.mean()), error, losses)


def stacking_weights(densities: Array) -> Array:
    """Weights (k,) that maximise the mean log density of the mixture, from log densities (k, n)."""
    weights = np.full(len(densities), 1.0 / len(densities))
    before = -math.inf
    for _ in range(_STEPS):
        mixed = _log_mixture(densities, weights)
        if mixed.mean() < before + _ENOUGH:
            break
        before = float(mixed.mean())
        weights = weights * np.exp(densities - mixed).mean(1)
        weights /= weights.sum()
    return weights


def _log_mixture(densities: Array, weights: Array) -> Array:
    return np.asarray(logsumexp(densities, axis=0, b=weights[:, None]))
