"""A learned linear map to few dimensions, normalised so that each coordinate has unit variance."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from certgp.errors import InvalidInputError
from certgp.transforms.standardised import Standardised


class Projection(Standardised):
    r"""z = (x - m) W / sd, sd_j = sqrt(w_j' C w_j), with m (D,) and C (D, D) the mean and covariance of the training
    inputs: the network without hidden layers, whose moments are known in closed form.
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
    def matrix(self) -> Tensor:
        """W / sd (D, d): z = (x - m) matrix."""
        return self.directions / _spread(self.directions, self.covariance)

    def raw(self, X: Tensor) -> Tensor:
        return X @ self.directions.to(X.dtype)

    def moments(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean @ self.directions, _spread(self.directions, self.covariance)


def _spread(directions: Tensor, covariance: Tensor) -> Tensor:
    """sd_j = sqrt(w_j' C w_j) (d,); a direction along which the data do not vary keeps its length."""
    variance = ((covariance @ directions) * directions).sum(0)
    floor = torch.finfo(directions.dtype).eps * directions.detach().square().sum(0)
    return torch.where(variance > floor, variance, torch.ones_like(variance)).sqrt()
