"""A weak prior on the signal variance, which near rows alone hardly determine."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy.optimize import brentq
from torch import Tensor

_SPREAD = 1.0  # tau (docs/decisions/0054)


@dataclass(frozen=True)
class SignalPrior:
    r"""p(log sf2) is flat below log v and falls as N(log v, tau^2) above it, v the scatter of the targets.

    Length-scales and signal variance can grow together with hardly a change of what near rows say of each other. At a
    row without near ones the prediction then goes on as a steep line. This counts as one more row, so that many rows
    decide for themselves. A small signal under much noise is nothing unusual, and is left alone.
    """

    centre: float  # log v
    spread: float = _SPREAD  # tau

    @classmethod
    def of(cls, y: Tensor) -> SignalPrior:
        """Of the mean square of these centred targets."""
        scatter = float(y.to(torch.float64).square().mean())
        return cls(math.log(scatter) if scatter > 0.0 else 0.0)

    def loss(self, log_signal: float) -> tuple[float, float]:
        """max(log sf2 - log v, 0)^2 / 2 tau^2, and its derivative."""
        distance = max(log_signal - self.centre, 0.0) / self.spread
        return 0.5 * distance**2, distance / self.spread

    def best_log_signal(self, mean_square: float, n: int) -> float:
        """log sf2 at the least n/2 (log sf2 + q / sf2) + max(log sf2 - log v, 0)^2 / 2 tau^2, q = mean e^2 / (v + g).

        It is log q where that is below log v, and otherwise between the two, where the derivative changes its sign.
        """
        own = math.log(mean_square)
        if own <= self.centre:
            return own

        def derivative(log_signal: float) -> float:
            return 0.5 * n * -math.expm1(own - log_signal) + self.loss(log_signal)[1]

        return float(brentq(derivative, self.centre, own, xtol=1e-10))
