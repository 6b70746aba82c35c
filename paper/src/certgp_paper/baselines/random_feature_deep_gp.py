"""RFEDGP: a deep GP with random Fourier features, learned by stochastic variational inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from certgp.checks import check_count
from certgp_paper.baselines.base import Baseline, minimise_in_batches
from certgp_paper.baselines.random_feature_layers import RandomFeatureNetwork

_BLOCK_ROWS = 250


class RandomFeatureDeepGP(Baseline):
    """Deep GP with random Fourier features [Cutajar, Bonilla, Michiardi & Filippone 2017], the paper's RFEDGP.

    Maximises ``E_q log p(y | f) - KL(q || p)`` over the posteriors of weights and frequencies, the length-scales, the
    signal variances and the noise. A prediction is the equal mixture over draws of the hidden layers.

    Parameters
    ----------
    widths : number of GPs in each hidden layer
    frequencies : per layer; features are twice as many
    max_iter : epochs
    batch_size : rows per step
    learning_rate : of Adam, at its height
    start_variance : of q(W)
    samples, prediction_samples : Monte Carlo samples in training and in prediction
    random_state : decides everything, the draws of a prediction included
    """

    def __init__(
        self,
        *,
        widths: Sequence[int] = (3, 3),
        frequencies: int = 100,
        max_iter: int = 100,
        batch_size: int = 1000,
        learning_rate: float = 0.01,
        start_variance: float = 0.01,
        samples: int = 20,
        prediction_samples: int = 100,
        random_state: Any = None,
    ) -> None:
        self.widths = widths
        self.frequencies = frequencies
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.start_variance = start_variance
        self.samples = samples
        self.prediction_samples = prediction_samples
        self.random_state = random_state

    def _train(self, X: Tensor, y: Tensor, seed: int) -> list[float]:
        for name in ("frequencies", "max_iter", "batch_size", "samples", "prediction_samples"):
            check_count(name, getattr(self, name))
        widths = tuple(check_count("widths", width) for width in self.widths)
        draws = torch.Generator().manual_seed(seed)
        network = RandomFeatureNetwork(X.shape[1], widths, self.frequencies, self.start_variance, draws)
        inputs, target = X.float(), y.float()

        def loss(rows: Tensor) -> Tensor:
            fit = network.expected_log_likelihood(inputs[rows], target[rows], self.samples, draws)
            return network.kl() / len(target) - fit

        self._network = network
        return minimise_in_batches(
            list(network.parameters()),
            loss,
            len(target),
            epochs=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed,
        )

    def _components(self, X: Tensor) -> tuple[Tensor, Tensor]:
        draws = torch.Generator().manual_seed(self._seed)
        blocks = [
            self._network.moments(block, self.prediction_samples, draws)
            for block in torch.split(X.float(), _BLOCK_ROWS)
        ]
        means, variances = (torch.cat(parts, dim=1) for parts in zip(*blocks, strict=True))
        return means, variances + self._network.log_noise_variance.exp()
