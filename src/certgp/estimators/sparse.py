"""SparseGP: variational sparse GP regression with inducing points."""

from __future__ import annotations

from typing import Any

from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import (
    LowRankParameters,
    ManyRowsParameters,
    ObjectiveParameters,
    SharedParameters,
    StartParameters,
)
from certgp.features.nystrom import DEFAULT_JITTER
from certgp.training.recipes import Settings, SparseRecipe, StagedTrainer


class SparseGP(
    ManyRowsParameters, ObjectiveParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor
):
    """Sparse GP regression (SGPR, Titsias 2009): the kernel seen through r inducing points, dominated by the kernel for
    every X.

    Parameters
    ----------
    rank : number of inducing points, or "auto" (see ``MercerGP``)
    inducing : where they start: "greedy" (pivoted Cholesky: the points that the others explain least), "kmeans", or an
        array (r, D) in the units of X. Points that are learned may have a better start in k-means, so "greedy" then
        tries both on a subsample, with several draws of k-means where points are few, and keeps the start that
        predicts held-out rows best
    learn_inducing : move them during the fit: by gradients, and now and then those that are hardly missed go to rows
        where they are worth more (unless they were given)
    jitter : part of the definition, Phi Phi' = K_xz (K_zz + jitter sf2 I)^-1 K_zx
    kernel : any kernel: a name or a kernel object, also a sum or a product
    objective : "elbo" (a lower bound on the exact evidence) or "marginal"
    variance : "dtc" adds the prior variance lost by truncation (the usual SGPR predictive), "lowrank" only outside the
        range of the training inputs, "paper" nowhere

    Notes
    -----
    All other parameters are those of ``MercerGP``.
    """

    inducing: Any = "greedy"
    learn_inducing: bool = True
    jitter: float = DEFAULT_JITTER
    max_iter: int = 600

    def trainer(self, settings: Settings) -> StagedTrainer:
        return StagedTrainer(SparseRecipe(self.inducing, self.learn_inducing, self.jitter), settings)
