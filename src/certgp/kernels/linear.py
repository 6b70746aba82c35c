"""The linear kernel: Bayesian linear regression as a Gaussian process."""

from __future__ import annotations

from typing import ClassVar, Self

from torch import Tensor

from certgp.kernels.base import Kernel
from certgp.kernels.parameters import LOCATION, Parameter


class Linear(Kernel):
    """k(x, x') = sum_j v_j (x_j - c_j) (x'_j - c_j): slopes of variance v_j, a function that is zero at the centre c.

    Its diagonal varies from row to row. The signal variance, its overall factor, is the mean of the v_j. A centre that
    is not given is the mean of the training inputs where a model is fitted, and zero elsewhere; it is not learned.
    """

    name = "linear"
    parameters: ClassVar = {
        "variance": Parameter(per_dimension=True, input_power=-2, output_power=2, log_bounds=(-14.0, 14.0)),
        "centre": LOCATION,
    }
    constant_diagonal = False
    variance: Tensor  # (d,) or ()
    centre: Tensor  # (d,) or ()

    @property
    def signal_variance(self) -> Tensor:
        return self.variance.mean()

    def with_signal_variance(self, signal_variance: float | Tensor) -> Self:
        return self.scaled(signal_variance / self.signal_variance)

    def scaled(self, factor: Tensor, given: bool = True) -> Self:
        return self.rebuild({"variance": factor * self.variance}, lambda _, part: part, given)

    @property
    def size_given(self) -> bool:
        return "variance" in self.given

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        centre, weight = self.centre.to(X.dtype), (self.variance / self.signal_variance).to(X.dtype)
        product: Tensor = ((X - centre) * weight) @ (Z - centre).mT
        return product

    def evaluate_diagonal(self, X: Tensor) -> Tensor:
        return ((X - self.centre).square() * (self.variance / self.signal_variance)).sum(1)
