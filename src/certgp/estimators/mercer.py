"""MercerGP: regression on the leading eigenfunctions of the Gaussian kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import (
    LowRankParameters,
    ManyRowsParameters,
    ObjectiveParameters,
    SharedParameters,
    StartParameters,
)
from certgp.training.recipes import MercerRecipe, Settings, StagedTrainer


class MercerGP(
    ManyRowsParameters, ObjectiveParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor
):
    """Mercer GP (the paper's MGP): rank-r regression on eigenfunctions of the Gaussian kernel, dominated by the kernel
    for every X.

    Parameters
    ----------
    rank : number of eigenfunctions, or "auto": as many as it takes to prove KL(exact || model) / N <= ``tolerance``
    projection : learn a linear map R^D -> R^d in front of the kernel: a number d, None for all D dimensions, or "auto"
        (all dimensions up to 4, else 4 or 9, whichever predicts rows held out from a subsample better)
    index_set : which products of one-dimensional eigenfunctions to keep: "greedy" (those that raise the objective most,
        from a pool of large eigenvalues), "optimal" (largest eigenvalues), "total_degree" (the paper's order) or "box"
    input_scale : standard deviation of the Gaussian input measure per kernel dimension, in the units of X (of the
        projection where there is one); None takes the data's own and learns it (``objective="marginal"``: or keeps it,
        whichever predicts rows held out from a subsample better)
    kernel : "gaussian" or a Gaussian kernel object with starting values
    objective : "elbo" (a lower bound on the exact evidence) or "marginal" (the paper's likelihood)
    variance : "dtc" adds the prior variance lost by truncation (so does the paper's released code), "lowrank" only
        outside the range of the training inputs, "paper" nowhere: the model of the paper's text itself
    max_iter : optimiser iterations in all, about half of them on a subsample where there are many rows; starts that are
        tried and dropped come on top
    length_scale, signal_variance, noise_variance, optimize : see ``StartParameters``
    tolerance, max_rank, dtype, engine, checkpoint, cap_rank : see ``LowRankParameters``
    growing : see ``ManyRowsParameters``
    standardize, noise, likelihood, calibrate, random_state, verbose, callbacks, max_seconds : see ``SharedParameters``
    """

    projection: int | Literal["auto"] | None = "auto"
    index_set: str = "greedy"
    input_scale: float | Sequence[float] | None = None
    max_iter: int = 300

    def trainer(self, settings: Settings) -> StagedTrainer:
        return StagedTrainer(MercerRecipe(self.projection, self.index_set, self.input_scale), settings)

    @property
    def projection_(self) -> NDArray[np.float64]:
        """The learned map (D, d): the kernel acts on (x - mean of X) projection_; with a warp on w(x) projection_."""
        found = self._fitted().linear_map()
        if found is None:
            raise AttributeError("projection_ exists only where a projection was learned; this fit used all columns")
        return found
