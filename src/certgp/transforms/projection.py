"""A learned linear map to few dimensions, normalised so that each coordinate has unit variance."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from certgp.errors import InvalidInputError
from certgp.transforms.base import Transform


class Projection(Transform):
    r"""z = (x - m) W / sd, sd_j = sqrt(w_j' C w_j), with m (D,) and C (D, D) the mean and covariance of the training
    inputs: the network without hidden layers, whose moments are known in closed form.

    Unit variance keeps the input measure N(0, 1) of the Mercer expansion right while h is learned, and leaves the scale
    of g(x) to the length-scales alone.
    """

    mean: Tensor
    covariance: Tensor

    def __init__(self, directions: Tensor, mean: Tensor, covariance: Tensor) -> None:
        super().__init__()
        if directions.shape[1] > directions.shape[0]:
            raise InvalidInputError(
                f"projection={directions.shape[1]} is more than the {directions.shape[0]} columns of X; "
                "choose a smaller dimension or projection=None"
            )
        self.directions = nn.Parameter(directions / _spread(directions, covariance))
        self.register_buffer("mean", mean)
        self.register_buffer("covariance", covariance)

    @property
    def dimension(self) -> int:
        return self.directions.shape[1]

    @property
    def linear_map(self) -> Tensor:
        """W / sd (D, d)."""
        return self.directions / _spread(self.directions, self.covariance)

    def forward(self, X: Tensor) -> Tensor:
        raw = X @ self.directions.to(X.dtype)
        mean, spread = self.mean @ self.directions, _spread(self.directions, self.covariance)
        return (raw - mean.to(raw.dtype)) / spread.to(raw.dtype)

    @classmethod
    def build(cls, configuration: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None) -> Self:
        return cls(tensors["directions"], tensors["mean"], tensors["covariance"])


def _spread(directions: Tensor, covariance: Tensor) -> Tensor:
    """sd_j = sqrt(w_j' C w_j) (d,); a direction along which the data do not vary keeps its length."""
    variance = ((covariance @ directions) * directions).sum(0)
    floor = torch.finfo(directions.dtype).eps * directions.detach().square().sum(0)
    return torch.where(variance > floor, variance, torch.ones_like(variance)).sqrt()
