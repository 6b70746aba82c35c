"""What a kernel says of each of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import InvalidInputError

Bounds = tuple[float, float]
Numbers = float | Sequence[float] | NDArray[np.float64] | Tensor
Units = NDArray[np.float64] | Tensor
LOG_SCALE_BOUNDS: Bounds = (-7.0, 9.0)  # e^-7 .. e^9 in units of the standardised inputs


@dataclass(frozen=True)
class Parameter:
    """How many numbers a parameter has, how they follow the units of the data, and between which ends it is learned.

    In units in which inputs are ``scale`` times larger and targets ``y_scale`` times, the value is multiplied by
    scale^input_power y_scale^output_power. A parameter that need not be positive is a location: it also moves with the
    mean of the inputs.
    """

    default: float = 1.0  # in standardised units where a model is fitted
    per_dimension: bool = False  # one number per dimension (or one for all of them), or a single number
    input_power: int = 0
    output_power: int = 0
    log_bounds: Bounds | None = None  # of its logarithm while it is learned; None where it is kept as it is
    positive: bool = True

    @property
    def is_length(self) -> bool:
        """Is it measured in the units of the inputs?"""
        return self.positive and self.input_power == 1

    def check(self, name: str, value: Numbers) -> Tensor:
        """The value as a float64 tensor of the right kind, or an error that names the parameter."""
        given = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value, dtype=np.float64))
        if given.ndim > (1 if self.per_dimension else 0):
            wanted = "one number or one per dimension" if self.per_dimension else "one number"
            raise InvalidInputError(f"{name} takes {wanted}, found an array of shape {tuple(given.shape)}")
        return as_positive(name, given) if self.positive else as_finite(name, given)

    def to_user(self, value: Tensor, mean: Tensor, scale: Tensor, y_scale: float) -> Tensor:
        """From the units of standardised inputs and targets to those of the data."""
        value = value * scale**self.input_power if self.input_power else value
        return (value if self.positive else value + mean) * y_scale**self.output_power

    def to_standardised(self, value: Tensor, mean: Tensor, scale: Tensor, y_scale: float) -> Tensor:
        """The inverse of ``to_user``."""
        value = (value if self.positive else value - mean) / y_scale**self.output_power
        return value / scale**self.input_power if self.input_power else value


LENGTH = Parameter(per_dimension=True, input_power=1, log_bounds=LOG_SCALE_BOUNDS)
SHAPE = Parameter(log_bounds=(-5.0, 7.0))
VARIANCE = Parameter(output_power=2, log_bounds=(-14.0, 14.0))
LOCATION = Parameter(default=0.0, per_dimension=True, input_power=1, positive=False)


def as_positive(name: str, value: Numbers) -> Tensor:
    """A float64 tensor of positive finite numbers, or an error that names the argument."""
    tensor = (value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value, dtype=np.float64))).double()
    if tensor.numel() == 0 or not bool(torch.isfinite(tensor).all()) or bool((tensor <= 0).any()):
        raise InvalidInputError(f"{name} must be positive and finite, found {tensor.detach().tolist()}")
    return tensor


def as_finite(name: str, value: Tensor) -> Tensor:
    """A float64 tensor of finite numbers, or an error that names the argument."""
    if value.numel() == 0 or not bool(torch.isfinite(value).all()):
        raise InvalidInputError(f"{name} must be finite, found {value.detach().tolist()}")
    return value.double()
