"""Covariance functions: values, sums and products, spectral laws and Mercer expansions."""

from certgp.kernels.base import Kernel
from certgp.kernels.composite import Product, Sum, named_kernel
from certgp.kernels.gaussian import Gaussian
from certgp.kernels.learned import KernelParameters
from certgp.kernels.linear import Linear
from certgp.kernels.matern import Matern12, Matern32, Matern52
from certgp.kernels.mercer import MercerExpansion
from certgp.kernels.parameters import LENGTH, LOCATION, SHAPE, VARIANCE, Parameter
from certgp.kernels.periodic import Periodic
from certgp.kernels.rational_quadratic import RationalQuadratic
from certgp.kernels.registry import kernel_from_description, kernel_from_name, registered_kernels
from certgp.kernels.stationary import distance_rounding, scaled_distance

__all__ = [
    "LENGTH",
    "LOCATION",
    "SHAPE",
    "VARIANCE",
    "Gaussian",
    "Kernel",
    "KernelParameters",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "MercerExpansion",
    "Parameter",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Sum",
    "distance_rounding",
    "kernel_from_description",
    "kernel_from_name",
    "named_kernel",
    "registered_kernels",
    "scaled_distance",
]
