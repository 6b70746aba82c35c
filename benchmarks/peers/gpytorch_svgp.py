"""GPyTorch's SVGP on minibatches: Adam, or natural gradients for q(u) beside Adam, as in its two examples."""

from __future__ import annotations

import math
from statistics import mean

import gpytorch
import torch
from torch import Tensor

from peers.protocol import STARTING_NOISE, Job, Recorder, serve

LEARNING_RATE, NATURAL_RATE, BATCH = 0.03, 0.1, 1024  # its examples have 0.01, which ends worse (docs/decisions/0012)
STRATEGY = gpytorch.variational.VariationalStrategy


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, job: Job, natural: bool) -> None:
        family = gpytorch.variational
        kind = family.NaturalVariationalDistribution if natural else family.CholeskyVariationalDistribution
        points = torch.from_numpy(job.inducing_points())
        super().__init__(STRATEGY(self, points, kind(job.rank), learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=job.X.shape[1]))
        self.covar_module.outputscale = 1.0
        self.covar_module.base_kernel.lengthscale = torch.from_numpy(job.starting_scales()).float()

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def optimisers(model: Model, likelihood: gpytorch.likelihoods.GaussianLikelihood, natural: bool, n: int) -> list:
    if not natural:
        return [torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=LEARNING_RATE)]
    return [
        gpytorch.optim.NGD(model.variational_parameters(), num_data=n, lr=NATURAL_RATE),
        torch.optim.Adam([*model.hyperparameters(), *likelihood.parameters()], lr=LEARNING_RATE),
    ]


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    X, y, X_test = (torch.from_numpy(array) for array in (job.X, job.y, job.X_test))
    natural = job.variant == "natural"
    recorder.start()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = STARTING_NOISE
    model = Model(job, natural).double()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    steps = optimisers(model, likelihood, natural, len(y))
    losses: list[float] = []  # of the last epoch's minibatches: they estimate the objective on all rows
    per_epoch = math.ceil(len(y) / BATCH)
    epochs = 0

    def score() -> None:
        model.eval(), likelihood.eval()
        with torch.no_grad():
            predictions = [likelihood(model(part)) for part in X_test.split(2_000)]
        model.train(), likelihood.train()
        moments = [torch.cat([getattr(p, name) for p in predictions]).numpy() for name in ("mean", "variance")]
        recorder.add(*moments, mean(losses))

    for epochs in range(1, job.budget + 1):  # noqa: B007 (reported below)
        for rows in torch.randperm(len(y)).split(BATCH):
            for step in steps:
                step.zero_grad()
            loss = -objective(model(X[rows]), y[rows])
            loss.backward()
            for step in steps:
                step.step()
            losses = [*losses[1 - per_epoch :], float(loss.detach())]
            if recorder.due:
                with recorder.paused():
                    score()
        if recorder.time_is_up:
            break
    recorder.stop()
    score()
    return {"gpytorch": gpytorch.__version__, "torch": torch.__version__, "epochs": epochs, "batch": BATCH}


if __name__ == "__main__":
    serve(run)
