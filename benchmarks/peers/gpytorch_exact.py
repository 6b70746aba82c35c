"""GPyTorch's exact GP: ARD kernels, Adam on the evidence of all rows; the kernel of the higher evidence is kept."""

from __future__ import annotations

from functools import partial

import gpytorch
import torch
from torch import Tensor

from peers.protocol import STARTING_NOISE, Job, Recorder, serve

LEARNING_RATE = 0.1  # as in its examples
KERNELS = {"gaussian": gpytorch.kernels.RBFKernel, "matern32": partial(gpytorch.kernels.MaternKernel, nu=1.5)}
DENSE = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)


class Model(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, y: Tensor, kernel: str, job: Job) -> None:
        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-6))
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(KERNELS[kernel](ard_num_dims=X.shape[1]))
        likelihood.noise = STARTING_NOISE
        self.covar_module.outputscale = 1.0
        self.covar_module.base_kernel.lengthscale = torch.from_numpy(job.starting_scales()).float()
        self.double()

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def train(model: Model, X: Tensor, y: Tensor, steps: int, is_over) -> tuple[float, int]:
    """Negative log evidence per row at the end, and the steps taken."""
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    model.train()
    step = 0
    while step == 0 or (step < steps and not is_over()):
        optimiser.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimiser.step()
        step += 1
    return float(loss.detach()), step


def run(job: Job, recorder: Recorder) -> dict[str, object]:
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    X, y, X_test = (torch.from_numpy(array) for array in (job.X, job.y, job.X_test))
    with DENSE:
        recorder.start()
        trained = {}
        for number, kernel in enumerate(KERNELS, 1):  # each has the same share of the limit
            model = Model(X, y, kernel, job)
            share = job.time_limit * number / len(KERNELS)
            is_over = lambda: recorder.elapsed()[int(recorder.end_only)] >= share  # noqa: B023, E731 (called at once)
            trained[kernel] = (*train(model, X, y, job.budget, is_over), model)
        best = min(trained, key=lambda kernel: trained[kernel][0])
        value, steps, model = trained[best]
        recorder.stop()
        model.eval()
        with torch.no_grad():
            found = model.likelihood(model(X_test))
            recorder.add(found.mean.numpy(), found.variance.numpy(), value)
    return {"gpytorch": gpytorch.__version__, "torch": torch.__version__, "kernel": best, "iterations": steps}


if __name__ == "__main__":
    serve(run)
