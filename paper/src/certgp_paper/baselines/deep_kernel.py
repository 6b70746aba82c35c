"""DKL: deep kernel learning with a grid of inducing points, by GPyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certgp.checks import check_count
from certgp.data import Chunk, ChunkSource, SubsetSource
from certgp.gp.calibration import gaussian_nlpd
from certgp.training.mini_batch.squared_error import Regression, SquaredErrorTask
from certgp.training.mini_batch.steps import MinibatchSettings, rate_factor, train_minibatches
from certgp.transforms import TanhNetwork
from certgp_paper.baselines.base import Baseline
from certgp_paper.baselines.gpytorch_library import gpytorch, without_deprecations

_HELD_OUT = 0.1
_START_NOISE = 0.1
_HEAD_RATE = 0.05  # of length-scale and variances
_CHECKS = 5  # looks at the held-out rows during joint training
_BLOCK_ROWS = 4096


class _Model(gpytorch.models.ExactGP):
    """A GP on the network's one output, its kernel interpolated from a grid on [-1, 1] [Wilson & Nickisch 2015]."""

    def __init__(
        self, network: Regression, X: Tensor, y: Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood, grid: int
    ) -> None:
        super().__init__(X, y, likelihood)
        self.network = network
        self.bounds = gpytorch.utils.grid.ScaleToBounds(-1.0, 1.0)
        self.mean_module = gpytorch.means.ConstantMean()
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        kernel.base_kernel.lengthscale = 0.5
        self.covar_module = gpytorch.kernels.GridInterpolationKernel(
            kernel, grid_size=grid, num_dims=1, grid_bounds=[(-1.0, 1.0)]
        )

    def forward(self, x: Tensor) -> Any:
        z = self.bounds(self.network(x.float()).double())[:, None]
        return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))


class DeepKernelGP(Baseline):
    """Deep kernel learning [Wilson, Hu, Salakhutdinov & Xing 2016], the paper's DKL.

    The network first learns y on squared error, as in DNN+S; then network and GP together maximise the evidence of all
    rows (Adam; conjugate gradients and Lanczos inside). A tenth of the rows is held out: it chooses the epoch of the
    first stage and the step of the second, as for the other models with a network. The GP is conditioned on all rows.

    Parameters
    ----------
    grid : number of inducing points, equally spaced over the network's output
    hidden : widths of the hidden layers
    pretraining : epochs of the first stage
    max_iter : steps of the second stage, each on all rows
    learning_rate : of the network in the second stage, at its height
    random_state : decides everything
    """

    def __init__(
        self,
        grid: int = 5000,
        *,
        hidden: Sequence[int] = (512, 256, 64),
        pretraining: int = 40,
        max_iter: int = 100,
        learning_rate: float = 2e-4,
        random_state: Any = None,
    ) -> None:
        self.grid = grid
        self.hidden = hidden
        self.pretraining = pretraining
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _train(self, X: Tensor, y: Tensor, seed: int) -> list[float]:
        for name in ("grid", "pretraining", "max_iter"):
            check_count(name, getattr(self, name))
        order = np.random.default_rng(seed).permutation(len(X))
        held_out, learned = np.split(order, [max(1, round(_HELD_OUT * len(X)))])
        network = self._pretrain(X, y, learned, held_out, seed)
        self._likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        self._likelihood.noise = _START_NOISE
        rows, others = torch.from_numpy(learned), torch.from_numpy(held_out)
        self._model = _Model(network, X[rows], y[rows], self._likelihood, self.grid)
        self._model.covar_module.double()
        self._model.mean_module.double()
        with without_deprecations():
            history = self._train_together(X[others], y[others])
            self._condition_on(X, y)
        return history

    def _pretrain(self, X: Tensor, y: Tensor, learned: Any, held_out: Any, seed: int) -> Regression:
        """The network after squared error, at its best epoch on the held-out rows."""
        start = torch.Generator().manual_seed(seed)
        network = TanhNetwork([X.shape[1], *self.hidden, 1], start).float()
        source = ChunkSource(Chunk(X.float(), y.float()))
        module = Regression(network, 1, start)
        task = SquaredErrorTask(module, SubsetSource(source, learned), SubsetSource(source, held_out))
        train_minibatches(task, MinibatchSettings(epochs=self.pretraining), seed=seed)
        return module

    def _train_together(self, X_held_out: Tensor, y_held_out: Tensor) -> list[float]:
        model, (X,), y = self._model, self._model.train_inputs, self._model.train_targets
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self._likelihood, model)
        head = [p for name, p in model.named_parameters() if not name.startswith("network.")]
        weights = [p for p in model.network.parameters() if p.requires_grad]
        optimiser = torch.optim.Adam([{"params": weights}, {"params": head}])
        history: list[float] = []
        best, best_state = np.inf, {}
        every = max(1, self.max_iter // _CHECKS)
        for step in range(self.max_iter):
            for group, rate in zip(optimiser.param_groups, (self.learning_rate, _HEAD_RATE), strict=True):
                group["lr"] = rate * rate_factor(step, self.max_iter)
            model.train()
            self._likelihood.train()
            optimiser.zero_grad()
            loss = -evidence(model(X), y)
            loss.backward()
            optimiser.step()
            history.append(float(loss.detach()))
            if (step + 1) % every == 0 or step + 1 == self.max_iter:
                score = self._held_out_nlpd(X_held_out, y_held_out)
                if score < best:
                    best, best_state = score, {k: v.detach().clone() for k, v in model.state_dict().items()}
        model.load_state_dict(best_state)
        return history

    @torch.no_grad()
    def _held_out_nlpd(self, X: Tensor, y: Tensor) -> float:
        self._model.eval()
        self._likelihood.eval()
        mean, variance = self._components(X)
        return gaussian_nlpd(y.numpy(), mean[0].numpy(), variance[0].numpy())

    @torch.no_grad()
    def _condition_on(self, X: Tensor, y: Tensor) -> None:
        self._model.set_train_data(X, y, strict=False)
        self._model.train()
        self._model(X)  # the grid now spans the outputs of all rows
        self._model.eval()
        self._likelihood.eval()

    def _components(self, X: Tensor) -> tuple[Tensor, Tensor]:
        with without_deprecations(), gpytorch.settings.fast_pred_var(), gpytorch.settings.cg_tolerance(1e-3):
            parts = [self._likelihood(self._model(block)) for block in torch.split(X, _BLOCK_ROWS)]
            return torch.cat([p.mean for p in parts])[None], torch.cat([p.variance for p in parts])[None]
