r"""A deep GP whose layers are Bayesian linear models on random Fourier features [Cutajar et al. 2017].

Layer l maps h (n, D_l) to f (n, d_l), each column a GP with a Gaussian kernel that R frequencies stand for:

    f = Phi(h) W,   Phi(h) = sf / sqrt(R) [cos(h Omega), sin(h Omega)]   (n, 2R)
    W_ij ~ N(0, 1),   Omega_jk ~ N(0, 1 / ell_j^2)

Both have posteriors q of independent Gaussians. Those of the frequencies are seen through one fixed draw e,
Omega = mean + sd * e, the same for all Monte Carlo samples ("variational with fixed randomness"), so that the bound is
a smooth function of their parameters. Hidden layers see the inputs again: h = [f, x].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_SMALLEST_VARIANCE = 1e-12


def gaussian_kl(mean: Tensor, log_variance: Tensor, log_prior_variance: Tensor) -> Tensor:
    """Sum over entries of KL(N(mean, v) || N(0, p)) = (v / p + mean^2 / p - 1 - log v / p) / 2."""
    log_ratio = log_variance - log_prior_variance
    return 0.5 * (log_ratio.exp() + mean.square() * (-log_prior_variance).exp() - 1.0 - log_ratio).sum()


class RandomFeatureLayer(nn.Module):
    """d_out GPs on d_in inputs with a common kernel.

    Length-scales start at sqrt(d_in) and q(Omega) at its prior, as in the authors' code. q(W) starts at N(0, v) with v
    small rather than the prior's 1: hidden layers that start as noise take most of a short run to become quiet.
    """

    fixed_draw: Tensor

    def __init__(
        self, d_in: int, d_out: int, frequencies: int, start_variance: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        log_scale = 0.5 * math.log(d_in)
        self.log_length_scale = nn.Parameter(torch.full((d_in, 1), log_scale))
        self.log_signal_variance = nn.Parameter(torch.zeros(()))
        self.frequency_mean = nn.Parameter(torch.zeros(d_in, frequencies))
        self.frequency_log_variance = nn.Parameter(torch.full((d_in, frequencies), -2.0 * log_scale))
        self.register_buffer("fixed_draw", torch.randn(d_in, frequencies, generator=generator))
        self.weight_mean = nn.Parameter(start_variance**0.5 * torch.randn(2 * frequencies, d_out, generator=generator))
        self.weight_log_variance = nn.Parameter(torch.full((2 * frequencies, d_out), math.log(start_variance)))

    def frequencies(self) -> Tensor:
        """Omega (d_in, R)."""
        return self.frequency_mean + (0.5 * self.frequency_log_variance).exp() * self.fixed_draw

    def moments(self, angles: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance (..., n, d_out) of f over q(W), at angles h Omega (..., n, R)."""
        cosines, sines = angles.cos(), angles.sin()
        R = angles.shape[-1]
        of_cosines, of_sines = torch.split(self.weight_mean, R)
        scale = (0.5 * self.log_signal_variance).exp() / R**0.5
        mean = scale * (cosines @ of_cosines + sines @ of_sines)
        # cos^2 v + sin^2 u = sum u + cos^2 (v - u): half the squares; rounding must not make it negative
        v, u = torch.split(self.weight_log_variance.exp(), R)
        variance = scale.square() * (u.sum(0) + cosines.square() @ (v - u)).clamp_min(_SMALLEST_VARIANCE)
        return mean, variance

    def kl(self) -> Tensor:
        """KL(q(W) || p(W)) + KL(q(Omega) || p(Omega))."""
        weights = gaussian_kl(self.weight_mean, self.weight_log_variance, torch.zeros(()))
        prior = (-2.0 * self.log_length_scale).expand_as(self.frequency_mean)
        return weights + gaussian_kl(self.frequency_mean, self.frequency_log_variance, prior)


class RandomFeatureNetwork(nn.Module):
    """Layers of GPs with a Gaussian likelihood: x -> widths[0] GPs -> ... -> y."""

    def __init__(
        self, columns: int, widths: tuple[int, ...], frequencies: int, start_variance: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        inputs = [columns, *(width + columns for width in widths)]
        self.layers = nn.ModuleList(
            RandomFeatureLayer(d_in, d_out, frequencies, start_variance, generator)
            for d_in, d_out in zip(inputs, [*widths, 1], strict=True)
        )
        self.log_noise_variance = nn.Parameter(torch.tensor(-2.0))

    @property
    def gp_layers(self) -> list[RandomFeatureLayer]:
        """The layers, from x to y."""
        return [layer for layer in self.layers if isinstance(layer, RandomFeatureLayer)]

    def moments(self, X: Tensor, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Mean and variance (samples, n) of f(x) given draws of the hidden layers; X (n, D).

        A row's term of the bound depends on its own hidden values alone, so these are drawn from their marginals
        instead of drawing W [Kingma et al. 2015]; over the last W the expectation is exact.
        """
        first, *others = self.gp_layers
        mean, variance = first.moments(X @ first.frequencies())
        mean, variance = mean.expand(samples, *mean.shape), variance.expand(samples, *variance.shape)
        for layer in others:
            hidden = mean + variance.sqrt() * torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
            of_hidden, of_inputs = torch.split(layer.frequencies(), [mean.shape[-1], X.shape[1]])
            mean, variance = layer.moments(hidden @ of_hidden + X @ of_inputs)
        return mean[..., 0], variance[..., 0]

    def expected_log_likelihood(self, X: Tensor, y: Tensor, samples: int, generator: torch.Generator) -> Tensor:
        """Mean over rows of E_q log N(y | f(x), s2); the hidden layers by Monte Carlo."""
        mean, variance = self.moments(X, samples, generator)
        misfit = ((y - mean).square() + variance).mean() * (-self.log_noise_variance).exp()
        return -0.5 * (math.log(2.0 * math.pi) + self.log_noise_variance + misfit)

    def kl(self) -> Tensor:
        """KL(q || p) of all layers."""
        return torch.stack([layer.kl() for layer in self.gp_layers]).sum()
