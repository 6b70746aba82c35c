"""Hat functions, the terms of a Taylor series of the Gaussian kernel: a feature map and its estimator."""

import torch

from certgp.estimators import GPRegressor, LowRankParameters, ObjectiveParameters, SharedParameters, StartParameters
from certgp.features import FeatureMap, total_degree_indices
from certgp.training.recipes import PlainRecipe, StagedTrainer


class HatMap(FeatureMap):
    """phi_a(x) = prod_j u_j^a_j e^(-u_j^2 / 2) / sqrt(a_j!), u = x / l, for the r smallest powers a. All phi_a phi_a'
    add up to e^(-|u|^2 / 2) e^(-|v|^2 / 2) e^(u'v) = k, and each of them is >= 0: Phi is dominated by the kernel.
    """

    dominated = decays = True
    rank = property(lambda self: len(self.powers))

    def __init__(self, kernel, dimension, rank):
        kernel.mercer(torch.ones(dimension))  # refuses all kernels but the Gaussian one
        super().__init__(kernel, dimension)
        self.powers = torch.from_numpy(total_degree_indices(dimension, rank))

    def basis(self, X):
        u = (X / self.kernel.length_scale)[:, None]
        return (u**self.powers * torch.exp(-0.5 * (u.square() + torch.lgamma(self.powers + 1.0)))).prod(2)

    def leading(self, rank):
        return HatMap(self.fixed_kernel(), self.dimension, rank)


class HatGP(ObjectiveParameters, LowRankParameters, StartParameters, SharedParameters, GPRegressor):
    """Regression on hat functions."""

    def trainer(self, settings):
        return StagedTrainer(PlainRecipe(HatMap, lambda k, X, rank, rng: HatMap(k, X.shape[1], rank)), settings)
