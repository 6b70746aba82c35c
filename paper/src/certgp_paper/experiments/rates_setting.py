r"""The simulated setting of the paper's figures 1 and 2, "Experimental rates of convergence".

    Gaussian     k = exp(-2 pi^2 |d|^2), that is length-scale 1 / (2 pi);  x_j ~ N(0, 1 / 16^2)
    Matern 1/2   k = exp(-2 pi |d|), the same length-scale;                x_j ~ Uniform(-sqrt(3) / 16, sqrt(3) / 16)

with unit signal variance, s2 = 1 and eps = 1e-2. Both input laws have the standard deviation 1 / 16. The paper prints
no kernel parameters. The Gaussian ones follow from its R; the Matern length-scale is inferred: with this one all that
the text says of the figure holds, with 1 the Matern ranks would be the smaller ones.  [theory T7]
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FeatureMap, FourierMap, MercerMap
from certgp.features.spectral import iid_design
from certgp.gp import LowRankModel
from certgp.guarantees import Problem, Reference, read_reference, reference_features
from certgp.kernels import Gaussian, Kernel, Matern12
from certgp.transforms import Identity

GAUSSIAN, MATERN = "gaussian", "matern12"
MERCER, EIGEN, FOURIER = "mercer", "eigendecomposition", "fourier"
CURVES = ((GAUSSIAN, MERCER), (GAUSSIAN, FOURIER), (MATERN, EIGEN), (MATERN, FOURIER))
NOISE = 1.0
EPSILON = 1e-2  # nats per row
INPUT_SCALE = 1.0 / 16.0
LENGTH_SCALE = 1.0 / (2.0 * math.pi)
_FREQUENCIES = 1  # their stream of random numbers


def kernel(name: str) -> Kernel:
    """The kernel of this name at the figures' length-scale."""
    return Gaussian(LENGTH_SCALE) if name == GAUSSIAN else Matern12(LENGTH_SCALE)


def normal_inputs(n: int, dimension: int, rng: np.random.Generator) -> Tensor:
    """Inputs (n, D) of the Gaussian kernel."""
    return torch.from_numpy(rng.normal(size=(n, dimension)) * INPUT_SCALE)


def uniform_inputs(n: int, dimension: int, rng: np.random.Generator) -> Tensor:
    """Inputs (n, D) of the Matern kernel."""
    half_width = math.sqrt(3.0) * INPUT_SCALE
    return torch.from_numpy(rng.uniform(-half_width, half_width, size=(n, dimension)))


def mercer_map(dimension: int, rank: int) -> MercerMap:
    """The ``rank`` largest terms of the Gaussian kernel's expansion, largest first."""
    return MercerMap(kernel(GAUSSIAN), np.full(dimension, INPUT_SCALE), rank)


def fourier_map(name: str, dimension: int, pairs: int, seed: int, draw: int = 0) -> FourierMap:
    """Independent frequencies of a kernel's spectral law, in a stream of their own for each seed and draw: that of
    [seed, 0] would be the one of the points, whose seed is padded with zeros.
    """
    design = iid_design(kernel(name), pairs, dimension, np.random.default_rng([seed, draw, _FREQUENCIES]))
    return FourierMap(kernel(name), design)


def reference(features: FeatureMap, name: str, X: Tensor, rank: int) -> Reference:
    """A reference of this rank, dominated by the kernel, read over the rows: what certificate R1 needs."""
    model = LowRankModel(Identity(X.shape[1]), features)
    rows = ChunkSource(Chunk(X, torch.zeros(len(X), dtype=torch.float64)))
    problem = Problem(model, 1.0, NOISE, rows, LocalEngine())
    with torch.no_grad():
        below = reference_features(kernel(name), X, rank)
    return read_reference(problem, below)
