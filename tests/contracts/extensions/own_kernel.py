"""The generalised Cauchy kernel: how smooth a function is and how slowly it forgets, each with a parameter."""

import math
from typing import ClassVar

import torch

from certgp.kernels import LENGTH, VARIANCE, Kernel, Parameter, distance_rounding, scaled_distance


class GeneralisedCauchy(Kernel):
    """k = sf2 (1 + r^alpha)^(-beta / alpha), r = |(x - x') / l|, 1 <= alpha <= 2.  [Gneiting, Schlather 2004]"""

    name = "generalised_cauchy"
    parameters: ClassVar = {
        "length_scale": LENGTH,
        "alpha": Parameter(default=1.5, log_bounds=(0.0, math.log(2.0))),
        "beta": Parameter(log_bounds=(-3.0, 3.0)),
        "signal_variance": VARIANCE,
    }
    constant_diagonal = decays = True

    def evaluate(self, X, Z):
        alpha, beta = self.alpha.to(X.dtype), self.beta.to(X.dtype)
        distance = scaled_distance(X, Z, self.length_scale)
        return torch.exp(-beta / alpha * torch.log1p(distance**alpha))

    def rounding(self, Z):
        """|dk/dr| <= max(beta, 1) and r |dk/dr| <= 1; what exp, log and power add is less."""
        return 2.0 * max(float(self.beta), 1.0) * distance_rounding(self.pick_columns(Z), self.length_scale)
