"""A network trained alone, on squared error: the first half of two-step models, and the paper's pre-training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.data import RowSource
from certgp.training.mini_batch.steps import MinibatchTask, TrainedModule

_BLOCK_ROWS = 4096


class Regression(TrainedModule):
    """x -> readout(h(x)) (n,), with h a module of (n, d) outputs and a linear readout where d > 1."""

    def __init__(self, network: nn.Module, dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.network = network
        dtype = next(network.parameters()).dtype
        weights = torch.randn((dimension, 1), generator=generator, dtype=torch.float64) / dimension**0.5
        self.readout = nn.Parameter(weights.to(dtype), requires_grad=dimension > 1)
        if dimension == 1:  # the network's last layer is a readout already
            self.readout.data.fill_(1.0)

    def forward(self, X: Tensor) -> Tensor:
        """Predictions (n,) of X (n, D)."""
        output: Tensor = self.network(X) @ self.readout
        return output[:, 0]


class SquaredErrorTask(MinibatchTask):
    """Minimise half the mean squared error, each row times its weight; the score is that of held-out rows, twice."""

    module: Regression

    def __init__(self, module: Regression, rows: RowSource, validation: RowSource | None) -> None:
        self.module, self.rows, self.validation = module, rows, validation
        self.n_rows, self.rank = rows.n_rows, 1
        self._chunks: Sequence[NDArray[np.int64]] = ()

    def network_parameters(self) -> list[nn.Parameter]:
        return [p for p in self.module.parameters() if p.requires_grad]

    def head_parameters(self) -> list[nn.Parameter]:
        return []

    def start(self) -> None:
        """Nothing to prepare."""

    def refresh(self, chunks: Sequence[NDArray[np.int64]]) -> None:
        self._chunks = [np.sort(chunk) for chunk in chunks]

    def step(self, index: int) -> float:
        chunk = self.rows.take(self._chunks[index])
        errors = (self.module(chunk.X) - chunk.y).square()
        loss = 0.5 * (errors if chunk.weight is None else chunk.weight.to(errors.dtype) * errors).mean()
        loss.backward()
        return float(loss.detach())

    def step_of_head(self) -> None:
        """There is no head."""

    def constrain(self) -> None:
        """No parameter has bounds."""

    @torch.no_grad()
    def validate(self, module: TrainedModule) -> float | None:
        if self.validation is None:
            return None
        chunks = self.validation.chunks(_BLOCK_ROWS)
        errors = [(c.weights() * (module(c.X) - c.y).double().square()).sum() for c in chunks]
        return float(torch.stack(errors).sum()) / self.validation.n_rows
