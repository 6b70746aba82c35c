"""A kernel with two parameters of its own, as somebody outside certgp would write it."""

import math

import torch

from certgp.kernels import LENGTH, VARIANCE, Kernel, Parameter


class Wavelet(Kernel):
    """k = sf2 exp(-r^2 / 2) prod_j cos(2 pi f_j (x_j - x'_j)): waves that fade out; r = |(x - x') / l|."""

    name = "wavelet"
    parameters = {  # noqa: RUF012
        "length_scale": LENGTH,
        "frequency": Parameter(per_dimension=True, input_power=-1, log_bounds=(-6.0, 4.0)),
        "signal_variance": VARIANCE,
    }
    constant_diagonal = True
    decays = True

    def evaluate(self, X, Z):
        difference = X[:, None, :] - Z[None, :, :]
        waves = torch.cos(2.0 * math.pi * self.frequency * difference).prod(2)
        return waves * torch.exp(-0.5 * (difference / self.length_scale).square().sum(2))
