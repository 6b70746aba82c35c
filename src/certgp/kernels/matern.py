"""Matern kernels of smoothness 1/2, 3/2 and 5/2."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from certgp.kernels.base import Kernel
from certgp.kernels.parameters import LENGTH, VARIANCE
from certgp.kernels.stationary import Radial, distance_rounding, invert, radial_function

_PARAMETERS = {"length_scale": LENGTH, "signal_variance": VARIANCE}


def _value12(r: Tensor) -> Tensor:
    return torch.exp(-r)


def _slope12(r: Tensor) -> Tensor:
    """-exp(-r) / r: there is a kink at r = 0."""
    return -torch.exp(-r) * invert(r)


def _value32(r: Tensor) -> Tensor:
    a = math.sqrt(3.0) * r
    return (1.0 + a) * torch.exp(-a)


def _slope32(r: Tensor) -> Tensor:
    """-3 exp(-a)."""
    return -3.0 * torch.exp(-math.sqrt(3.0) * r)


def _value52(r: Tensor) -> Tensor:
    a = math.sqrt(5.0) * r
    return (1.0 + a + a.square() / 3.0) * torch.exp(-a)


def _slope52(r: Tensor) -> Tensor:
    """-5/3 (1 + a) exp(-a)."""
    a = math.sqrt(5.0) * r
    return (-5.0 / 3.0) * (1.0 + a) * torch.exp(-a)


class Matern12(Kernel):
    """k = sf2 exp(-r), r = |(x - x') / l|."""

    name, parameters, spectral_degrees = "matern12", _PARAMETERS, 1
    constant_diagonal, decays = True, True
    length_scale: Tensor

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return radial_function(X, Z, self.length_scale, Radial(_value12, _slope12, has_kink=True))

    def rounding(self, Z: Tensor) -> float:
        return distance_rounding(self.pick_columns(Z), self.length_scale)


class Matern32(Kernel):
    """k = sf2 (1 + a) exp(-a), a = sqrt(3) |(x - x') / l|."""

    name, parameters, spectral_degrees = "matern32", _PARAMETERS, 3
    constant_diagonal, decays = True, True
    length_scale: Tensor

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return radial_function(X, Z, self.length_scale, Radial(_value32, _slope32))

    def rounding(self, Z: Tensor) -> float:
        return distance_rounding(self.pick_columns(Z), self.length_scale)


class Matern52(Kernel):
    """k = sf2 (1 + a + a^2 / 3) exp(-a), a = sqrt(5) |(x - x') / l|."""

    name, parameters, spectral_degrees = "matern52", _PARAMETERS, 5
    constant_diagonal, decays = True, True
    length_scale: Tensor

    def evaluate(self, X: Tensor, Z: Tensor) -> Tensor:
        return radial_function(X, Z, self.length_scale, Radial(_value52, _slope52))

    def rounding(self, Z: Tensor) -> float:
        return distance_rounding(self.pick_columns(Z), self.length_scale)
