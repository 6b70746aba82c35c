"""Learned maps whose coordinates are brought to zero mean and unit variance over the training inputs."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from certgp.transforms.base import Transform


class Standardised(Transform):
    r"""g(x) = (h(x) - m) / s with h: R^D -> R^d learned and m, s (d,) the mean and standard deviation of h(x).

    Unit variance keeps the input measure N(0, 1) of the Mercer expansion right while h is learned, and leaves the scale
    of g(x) to the length-scales alone. A linear h is a projection, whose moments follow from those of x; a network
    has to measure them.
    """

    @abstractmethod
    def raw(self, X: Tensor) -> Tensor:
        """h(x): X (n, D) -> (n, d)."""

    @abstractmethod
    def moments(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """m and s, each (d,), for these outputs (n, d); they carry gradients where they follow from the parameters."""

    def forward(self, X: Tensor) -> Tensor:
        """X (n, D) -> (n, d)."""
        raw = self.raw(X)
        mean, scale = self.moments(raw)
        return (raw - mean.to(raw.dtype)) / scale.to(raw.dtype)
