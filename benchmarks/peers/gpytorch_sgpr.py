"""GPyTorch's SGPR: ``InducingPointKernel`` in an ``ExactGP``, trained with Adam on all rows as in its SGPR example."""

from __future__ import annotations

import gpytorch
import torch
from torch import Tensor

from peers.protocol import STARTING_NOISE, Job, Recorder, serve

LEARNING_RATE = 0.1


class Model(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, y: Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood, job: Job) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))
        self.base.outputscale = 1.0
        self.base.base_kernel.lengthscale = torch.from_numpy(job.starting_scales()).to(X)
        points = torch.from_numpy(job.inducing_points()).to(X)
        self.covar_module = gpytorch.kernels.InducingPointKernel(self.base, points, likelihood)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    X, y, X_test = (torch.from_numpy(array) for array in (job.X, job.y, job.X_test))
    recorder.start()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = STARTING_NOISE
    model = Model(X, y, likelihood, job).double()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    iterations = 0

    def score() -> None:
        with torch.no_grad():
            value = -float(objective(model(X), y))
            model.eval(), likelihood.eval()
            predictions = [likelihood(model(part)) for part in X_test.split(2_000)]
            mean = torch.cat([p.mean for p in predictions])
            variance = torch.cat([p.variance for p in predictions])
            model.train(), likelihood.train()
        recorder.add(mean.numpy(), variance.numpy(), value)

    for iterations in range(1, job.budget + 1):  # noqa: B007 (reported below)
        optimiser.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimiser.step()
        if recorder.due:
            with recorder.paused():
                score()
        if recorder.time_is_up:
            break
    recorder.stop()
    score()
    return {"gpytorch": gpytorch.__version__, "torch": torch.__version__, "iterations": iterations}


if __name__ == "__main__":
    serve(run)
