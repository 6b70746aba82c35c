"""An example of everything that is registered: what the contract tests run over.

Something new without a case here fails ``test_everything_that_is_registered_has_a_case``, which says what to add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap, ResidualMap
from certgp.features.base import FEATURE_MAPS
from certgp.features.spectral import iid_design
from certgp.kernels import (
    Gaussian,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    registered_kernels,
)
from certgp.methods import BUILT_IN
from helpers import CONSTANT, VARYING, random_inputs

POINTS = random_inputs(0, 200, 2)  # inducing points, of which a map takes the first ones
GAUSSIAN = Gaussian([0.9, 1.7])


@dataclass(frozen=True)
class MapCase:
    """A feature map on two columns, as a function of its rank."""

    cls: type[FeatureMap]
    build: Callable[[int], FeatureMap]
    large: int = 150  # a rank at which Phi Phi' is close to K where the rows are, if the map approximates a kernel
    error: float = 1e-3  # that it leaves at that rank, of k(x, x)
    trained: bool = True  # are its parameters learned, or is it a reference that is made once?


def fourier(kernel: Kernel, learn: bool = False) -> Callable[[int], FourierMap]:
    def build(rank: int) -> FourierMap:
        return FourierMap(kernel, iid_design(kernel, rank // 2, 2, np.random.default_rng(1)), learn_frequencies=learn)

    return build


def mercer(rank: int) -> MercerMap:
    return MercerMap(GAUSSIAN, [1.0, 1.3], rank, centre=torch.tensor([0.2, -0.1], dtype=torch.float64))


def residual(rank: int) -> ResidualMap:
    return ResidualMap(mercer(rank - rank // 4), POINTS[: rank // 4])


def nystrom(kernel: Kernel, jitter: float = 1e-6) -> Callable[[int], NystromMap]:
    return lambda rank: NystromMap(kernel, POINTS[:rank], jitter=jitter)


MAPS = {
    "mercer": MapCase(MercerMap, mercer),
    "fourier": MapCase(FourierMap, fourier(GAUSSIAN), 8_000, 0.1),
    "fourier-matern32": MapCase(FourierMap, fourier(Matern32([0.9, 1.7])), 8_000, 0.1),
    "fourier-learned": MapCase(FourierMap, fourier(GAUSSIAN, learn=True)),
    "nystrom": MapCase(NystromMap, nystrom(GAUSSIAN)),
    "nystrom-matern12": MapCase(NystromMap, nystrom(Matern12([5.0, 9.0])), 200, 0.2),
    "nystrom-sum": MapCase(NystromMap, nystrom(CONSTANT["sum"]), 200, 0.05),
    "nystrom-product": MapCase(NystromMap, nystrom(CONSTANT["product"]), 200, 0.2),
    "nystrom-varying": MapCase(NystromMap, nystrom(VARYING["gaussian + linear"], jitter=1e-4)),
    "residual": MapCase(ResidualMap, residual, trained=False),
}

# name of the family -> a kernel of it on two columns, with other values than the defaults
FAMILIES: dict[str, Kernel] = {
    "gaussian": Gaussian([0.9, 1.7], 1.3),
    "matern12": Matern12([0.9, 1.7], 1.3),
    "matern32": Matern32([0.9, 1.7], 1.3),
    "matern52": Matern52([0.9, 1.7], 1.3),
    "rational_quadratic": RationalQuadratic([0.9, 1.7], 1.3, 0.6),
    "periodic": Periodic([0.8, 1.5], [1.7, 2.9], 0.7),
    "linear": Linear([0.4, 1.7], [0.3, -0.2]),
}
KERNELS = FAMILIES | {
    "columns": Gaussian([0.9], 1.4, columns=[1]),
    "sum": Gaussian([0.7, 1.4], 0.8) + Matern32(1.1, 0.5, columns=[0]),
    "product": Matern32([0.9, 2.0], 1.5) * Periodic(1.2, 2.3, 0.6),
    "gaussian + linear": Gaussian([0.7, 1.4], 0.8) + Linear([0.4, 1.7], columns=[0, 1]),
}

# name of the method -> options that make it quick
METHODS: dict[str, dict[str, Any]] = {
    "auto": {"rank": 8, "max_iter": 5, "candidates": ("mercer", "sparse", "fourier")},  # all can be certified
    "mercer": {"rank": 8, "max_iter": 5},
    "fourier": {"rank": 8, "max_iter": 5},
    "sparse": {"rank": 8, "max_iter": 5},
    "exact": {"max_iter": 5},
    "local": {"max_iter": 5, "neighbours": 10},
    "deep-mercer": {"rank": 4, "max_iter": 1, "hidden": (4,)},
    "deep-fourier": {"rank": 4, "max_iter": 1, "hidden": (4,), "embedding": 2},
}


def missing_cases() -> list[str]:
    """What is registered inside certgp and has no case, each with what to add."""
    maps = [name for name, cls in FEATURE_MAPS.items() if cls.__module__.startswith("certgp.")]
    kernels = [name for name, cls in registered_kernels().items() if cls.__module__.startswith("certgp.")]
    covered = {case.cls.__name__ for case in MAPS.values()}
    here = "tests/contracts/registered_cases.py"
    return [
        *(
            f"add a MapCase for {name} to MAPS in {here}: a function of its rank"
            for name in maps
            if name not in covered
        ),
        *(f"add a kernel of the family {name!r} to FAMILIES in {here}" for name in kernels if name not in FAMILIES),
        *(f"add quick options for {m.name!r} to METHODS in {here}" for m in BUILT_IN if m.name not in METHODS),
    ]


def rows_inside_and_far_out() -> Tensor:
    """Rows like those that maps are made for, and some at a great distance."""
    near = random_inputs(5, 40, 2, "heavy")
    return torch.cat([near, near[:5] + 30.0, near[5:10] * torch.tensor([1.0, -200.0])])
