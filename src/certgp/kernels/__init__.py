"""Covariance functions: values, spectral densities and Mercer expansions."""

from certgp.kernels.base import Kernel, kernel_from_name
from certgp.kernels.gaussian import Gaussian
from certgp.kernels.matern import Matern12, Matern32, Matern52
from certgp.kernels.mercer import MercerExpansion

__all__ = ["Gaussian", "Kernel", "Matern12", "Matern32", "Matern52", "MercerExpansion", "kernel_from_name"]
